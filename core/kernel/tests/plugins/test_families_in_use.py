"""Families of extensions: what a driver finds in a database, and what its contract catches."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from family_material import API, DRIVER, EXTENSION, only_problem, styles_of
from svc.database import Database
from svc.errors import PluginError, PluginMissing
from svc.plugins import (
    ActivePlugins,
    Family,
    PluginProblem,
    ProblemKind,
    configure,
    describe_plugins,
    diagnose,
    disable,
    enable,
    load_plugins,
)
from svc_cli import extensions_of
from svc_testing import ExtensionContract, HookPagesContract, PluginContract


@pytest.fixture
def running(strangers, tmp_path) -> Callable:
    """Starts a driver and two extensions in a database where the driver and ``calm`` are enabled."""
    opened = []

    def start(*enabled: str):
        driver = strangers.driver()
        plugins = load_plugins([strangers.extension("calm"), driver, strangers.extension("loud")])
        assert plugins.problems == ()
        database = Database(tmp_path / "families.svcdb")
        for plugin_id in enabled:
            enable(database, plugins, plugin_id)
        active = ActivePlugins(plugins, database)
        opened.append((active, database))
        active.start()
        return types.SimpleNamespace(plugins=plugins, database=database, active=active)

    yield start
    for active, database in opened:
        active.stop()
        database.close()


def test_a_plugin_that_is_enabled_and_cannot_be_used_is_broken(strangers, tmp_path, monkeypatch) -> None:
    driver, calm, loud = strangers.driver(), strangers.extension("calm"), strangers.extension("loud")
    with Database(tmp_path / "x.svcdb") as database:
        plugins = load_plugins([driver, calm, loud])
        for plugin_id in (driver, calm, loud):
            enable(database, plugins, plugin_id)
        for allowed, problem, broken in (
            ([driver, calm, loud], None, False),
            ([driver, calm], None, False),
            ([driver, calm, loud], PluginProblem(loud, ProblemKind.BROKEN, "It is."), True),
        ):
            known = () if problem is None else (problem,)
            booted = load_plugins(allowed, known=known)
            active = ActivePlugins(booted, database)
            active.start()
            assert active.context(driver).is_broken(loud) is broken
            assert not active.context(driver).is_broken(calm)
            active.stop()


def extensions(running):
    running.active.current()
    return running.active.context("test.greeter").extensions(styles_of())


def test_a_driver_finds_what_is_enabled_in_the_database_and_who_added_it(running):
    process = running("test.greeter", "test.calm")
    found = extensions(process)
    assert set(found) == {"calm"}
    assert found["calm"].value is process.plugins.registries.driven["styles"].registry.get("calm")
    context = found["calm"].context
    assert (context.plugin_id, context.configuration.marks) == ("test.calm", 1)
    assert context.database is process.database


def test_enabling_disabling_and_settings_take_effect_in_a_running_process(running):
    process = running("test.greeter", "test.calm")
    before = extensions(process)
    with process.database.transaction() as transaction:
        transaction.put(("file",), b"content")
    enable(process.database, process.plugins, "test.greeter")
    assert extensions(process) is before
    enable(process.database, process.plugins, "test.loud")
    assert set(extensions(process)) == {"calm", "loud"}
    configure(process.database, process.plugins, "test.loud", {"marks": 3})
    assert extensions(process)["loud"].context.configuration.marks == 3
    disable(process.database, process.plugins, "test.calm")
    assert set(extensions(process)) == {"loud"}
    with pytest.raises(TypeError):
        extensions(process)["calm"] = before["calm"]


def test_a_context_of_long_ago_gives_what_is_in_use_now(running):
    process = running("test.greeter", "test.calm")
    context = process.active.context("test.greeter")
    enable(process.database, process.plugins, "test.loud")
    process.active.current()
    assert set(context.extensions(styles_of())) == {"calm", "loud"}
    process.active.stop()
    assert context.extensions(styles_of()) == {}


def test_a_driver_that_starts_finds_all_of_its_extensions(running):
    # The driver's id comes between theirs.
    running("test.greeter", "test.calm", "test.loud")
    assert sys.modules["svc_test_greeter.plugin"].seen == [["calm", "loud"]]


def test_a_plugin_that_needs_the_driver_that_it_extends_starts_before_it_and_not_without_it(
    strangers, tmp_path
):
    driver, loud = strangers.driver(), strangers.extension("loud", needs=("test.greeter",))
    plugins = load_plugins([driver, loud])
    with Database(tmp_path / "needs.svcdb") as database:
        for plugin_id in (driver, loud):
            enable(database, plugins, plugin_id)
        active = ActivePlugins(plugins, database)
        active.start()
        assert sys.modules["svc_test_greeter.plugin"].seen == [["loud"]]
        active.stop()
    assert only_problem(load_plugins([loud]), loud).kind is ProblemKind.NEEDS


def test_a_driver_that_starts_finds_what_it_adds_itself(strangers, tmp_path):
    plugin = (
        DRIVER.format(package="svc_test_greeter")
        + """
@hookimpl
def svc_register_styles(styles):
    from svc_test_greeter.api import Style
    class Plain(Style):
        name = "plain"
    styles.add(Plain())
"""
    )
    plugins = load_plugins([strangers.driver(plugin=plugin)])
    with Database(tmp_path / "own.svcdb") as database:
        enable(database, plugins, "test.greeter")
        active = ActivePlugins(plugins, database)
        active.start()
        assert sys.modules["svc_test_greeter.plugin"].seen == [["plain"]]
        active.stop()


def test_two_drivers_that_extend_each_other_start_both(strangers, tmp_path):
    one = strangers.install(
        "one",
        {"families": "svc_test_one.api", "extends": ("test.two:shapes",)},
        "",
        {"svc_test_one.api": API.format(name="styles")},
    )
    two = strangers.install(
        "two",
        {"families": "svc_test_two.api", "extends": ("test.one:styles",)},
        "",
        {"svc_test_two.api": API.format(name="shapes")},
    )
    plugins = load_plugins([one, two])
    with Database(tmp_path / "circle.svcdb") as database:
        for plugin_id in (one, two):
            enable(database, plugins, plugin_id)
        active = ActivePlugins(plugins, database)
        assert set(active.start()) == {one, two}
        active.stop()


def test_an_extension_whose_plugin_fails_to_start_is_not_found(strangers, tmp_path):
    failing = EXTENSION.format(family="styles", driver="svc_test_greeter", name="failing")
    failing += "\n@hookimpl\ndef svc_start(context): raise RuntimeError('no start')\n"
    ids = [strangers.driver(), strangers.extension("failing", failing), strangers.extension("loud")]
    plugins = load_plugins(ids)
    assert plugins.problems == ()
    with Database(tmp_path / "failing.svcdb") as database:
        for plugin_id in ids:
            enable(database, plugins, plugin_id)
        active = ActivePlugins(plugins, database)
        active.start()
        assert set(active.context("test.greeter").extensions(styles_of())) == {"loud"}
        assert [finding.code for finding in active.findings()] == ["plugin.start-failed"]
        active.stop()


def test_where_the_driver_is_not_enabled_its_extensions_rest_and_nothing_is_wrong(running):
    process = running("test.loud")
    assert "test.loud" in process.active.current()
    assert process.active.context("test.greeter") is None
    assert (process.active.findings(), diagnose(process.plugins, process.database)) == ((), [])
    reports = {item.id: item for item in describe_plugins(process.plugins, process.database)}
    assert reports["test.loud"].rests == ["test.greeter:styles"]
    assert reports["test.greeter"].drives == ["styles"]
    enable(process.database, process.plugins, "test.greeter")
    assert set(extensions(process)) == {"loud"}
    reports = {item.id: item for item in describe_plugins(process.plugins, process.database)}
    assert (reports["test.loud"].rests, reports["test.loud"].adds["styles"]) == ([], ["loud"])


def test_a_plugin_is_refused_the_family_of_another(running):
    process = running("test.greeter", "test.calm")
    with pytest.raises(PluginError, match=re.escape("'test.greeter' drives it")):
        process.active.context("test.calm").extensions(styles_of())
    with pytest.raises(PluginError, match="not loaded"):
        process.active.context("test.greeter").extensions(Family("colours", "colour", object))


def test_while_a_driver_is_being_enabled_it_is_told_that_its_families_are_not_there_yet(strangers, tmp_path):
    plugin = DRIVER.format(package="svc_test_greeter").replace("svc_start", "svc_enable")
    plugins = load_plugins([strangers.driver(plugin=plugin)])
    with (
        Database(tmp_path / "early.svcdb") as database,
        pytest.raises(PluginError, match="from svc_start on"),
    ):
        enable(database, plugins, "test.greeter")


def test_a_command_reads_a_family_and_loads_no_other(strangers, tmp_path, monkeypatch):
    ids = [strangers.driver(), strangers.extension("calm"), strangers.extension("loud")]
    strangers.driver("other", "colours", plugin="")
    plugins = load_plugins(ids)
    monkeypatch.setenv("SVC_PLUGINS", ",".join([*ids, "test.other"]))
    with Database(tmp_path / "command.svcdb") as database:
        for plugin_id in ids[:2]:
            enable(database, plugins, plugin_id)
        found = extensions_of(database, "test.greeter", styles_of())
        assert [(name, item.context.plugin_id) for name, item in found.items()] == [("calm", "test.calm")]
        assert "svc_test_other.api" not in sys.modules
        with pytest.raises(PluginError, match="not loaded"):
            extensions_of(database, "test.calm", styles_of())
        monkeypatch.setenv("SVC_PLUGINS", "test.calm")
        with pytest.raises(PluginMissing, match="not allowed"):
            extensions_of(database, "test.greeter", styles_of())


# Contracts ------------------------------------------------------------------------------------------------


def as_class(base: type, **attributes):
    return type("Contract", (base,), attributes)()


@pytest.mark.parametrize("needs", [(), ("test.greeter",)], ids=["alone", "needing"])
def test_the_contracts_pass_for_a_driver_and_its_extension(strangers, tmp_path, needs):
    strangers.driver(plugin="")
    strangers.extension("loud", needs=needs)
    load_plugins(["test.greeter", "test.loud"])
    contract = as_class(ExtensionContract, family=styles_of(), plugin_id="test.loud")
    loud = load_plugins(["test.greeter", "test.loud"]).registries.driven["styles"].registry.get("loud")
    contract.test_the_family_takes_it(loud)
    contract.test_it_rests_where_its_driver_is_not_allowed("test.greeter")
    contract.test_it_rests_where_its_driver_is_not_installed("test.greeter")
    contract.test_its_driver_finds_it_while_its_plugin_is_enabled("test.greeter", tmp_path)
    for plugin_id in ("test.greeter", "test.loud"):
        contract = as_class(PluginContract, plugin_id=plugin_id)
        contract.test_loads_alone_with_only_the_kernel()
        contract.test_what_its_extensions_import_is_light()
        contract.test_a_short_command_does_not_import_its_families()
        contract.test_it_imports_only_what_is_public()


def test_the_contract_catches_an_extension_that_cannot_rest(strangers):
    strangers.driver()
    source = "import svc_test_greeter.api\n" + EXTENSION.format(
        family="styles", driver="svc_test_greeter", name="eager"
    )
    strangers.extension("eager", source)
    load_plugins(["test.greeter", "test.eager"])
    contract = as_class(ExtensionContract, family=styles_of(), plugin_id="test.eager")
    with pytest.raises(AssertionError, match="svc_test_greeter"):
        contract.test_it_rests_where_its_driver_is_not_installed("test.greeter")


def test_the_contract_catches_a_driver_whose_api_is_heavy(strangers):
    strangers.driver(api="import falcon\n" + API.format(name="styles"))
    with pytest.raises(AssertionError, match="falcon"):
        as_class(PluginContract, plugin_id="test.greeter").test_what_its_extensions_import_is_light()


PAGE = """# `svc_register_styles(styles: object) -> None`

**Called:** at boot.

```python
from svc.plugin import hookimpl
from svc_test_greeter.api import Style


class Sample(Style):
    name = "sample"


@hookimpl
def svc_register_styles(styles):
    styles.add(Sample())
```
"""


def test_the_pages_of_a_driver_are_held_to_its_specifications(strangers, distributions, tmp_path: Path):
    load_plugins([strangers.driver()])
    (tmp_path / "svc_register_styles.md").write_text(PAGE)
    (tmp_path / "index.md").write_text("| [`svc_register_styles`](svc_register_styles.md) | Styles |\n")
    pages = as_class(
        HookPagesContract,
        directory=tmp_path,
        specifications=sys.modules["svc_test_greeter.api"],
        driver_id="test.greeter",
    )
    pages.test_every_hook_has_a_page_and_every_page_a_hook()
    pages.test_the_index_names_every_hook_once()
    pages.test_the_heading_is_the_exact_signature("svc_register_styles")
    pages.test_page_and_docstring_say_when_it_is_called("svc_register_styles")
    pages.test_the_samples_are_plugins_that_load("svc_register_styles", distributions)
    (tmp_path / "svc_register_styles.md").write_text(PAGE.replace("styles: object", "styles: str"))
    with pytest.raises(AssertionError):
        pages.test_the_heading_is_the_exact_signature("svc_register_styles")
