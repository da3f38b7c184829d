"""Families of extensions: a driver, extensions of other distributions, and everything that can go wrong."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from svc.cli import extensions_of
from svc.database import Database
from svc.errors import PluginError, PluginMissing
from svc.plugins import (
    ActivePlugins,
    Family,
    PluginDescriptor,
    ProblemKind,
    configure,
    describe_plugins,
    diagnose,
    disable,
    enable,
    load_plugins,
    plugin_findings,
)
from svc_testing import DistributionFactory, ExtensionContract, HookPagesContract, PluginContract

API = '''
from svc.plugin import Family, hookspec

class Style:
    pass

@hookspec
def svc_register_{name}({name}: object) -> None:
    """Adds styles. Called at boot."""

STYLES = Family({name!r}, "style", Style)
FAMILIES = (STYLES,)
'''
DESCRIPTOR = """
import msgspec
from svc.plugin import PluginDescriptor

class Settings(msgspec.Struct):
    marks: int = 1

PLUGIN = PluginDescriptor({id!r}, "1.0", "For tests", (1, 1), {implementation!r}, Settings, **{fields!r})
"""
DRIVER = """
from svc.plugin import *
from {package}.api import STYLES

seen = []

@hookimpl
def svc_start(context):
    seen.append(sorted(context.extensions(STYLES)))
"""
EXTENSION = """
from svc.plugin import *

@hookimpl
def svc_register_{family}({family}):
    from {driver}.api import Style
    class Named(Style):
        name = {name!r}
    {family}.add(Named())

@hookimpl
def svc_register_health_checks(health_checks):
    class Check(HealthCheck):
        name = {name!r}
        def check(self, context):
            return HealthReport()
    health_checks.add(Check())
"""
HOOK = "from svc.plugin import hookimpl\n@hookimpl\n"


class Strangers:
    """Installs drivers and extensions, each as a distribution of its own."""

    def __init__(self, distributions: DistributionFactory) -> None:
        self._distributions = distributions

    def driver(
        self, name: str = "greeter", family: str = "styles", api: str | None = None, plugin: str | None = None
    ) -> str:
        """Installs the plugin ``test.<name>``, which drives a family."""
        package = f"svc_test_{name}"
        return self.install(
            name,
            {"families": f"{package}.api"},
            DRIVER.format(package=package) if plugin is None else plugin,
            {f"{package}.api": API.format(name=family) if api is None else api},
        )

    def extension(
        self, name: str, plugin: str | None = None, driver: str = "greeter", family: str = "styles", **fields
    ) -> str:
        """Installs the plugin ``test.<name>``, which adds a style of that name."""
        fields = {"extends": (f"test.{driver}:{family}",), **fields}
        source = EXTENSION.format(family=family, driver=f"svc_test_{driver}", name=name)
        return self.install(name, fields, source if plugin is None else plugin, {})

    def install(self, name: str, fields: dict, plugin: str, modules: dict[str, str]) -> str:
        package, plugin_id = f"svc_test_{name}", f"test.{name}"
        descriptor = DESCRIPTOR.format(id=plugin_id, implementation=f"{package}.plugin", fields=fields)
        self._distributions.install(
            f"svc-test-{name}",
            modules={f"{package}.descriptor": descriptor, f"{package}.plugin": plugin, **modules},
            entry_points={plugin_id: f"{package}.descriptor:PLUGIN"},
        )
        return plugin_id


@pytest.fixture
def strangers(distributions) -> Strangers:
    return Strangers(distributions)


def styles_of(driver: str = "greeter") -> Family:
    return sys.modules[f"svc_test_{driver}.api"].STYLES


def added(plugins, family: str = "styles") -> dict[str, str]:
    return {item.name: item.plugin_id for item in plugins.registries.driven[family].registry}


def only_problem(plugins, plugin_id: str):
    (problem,) = plugins.problems
    assert problem.plugin_id == plugin_id
    assert plugin_id not in plugins.descriptors
    return problem


# Boot -----------------------------------------------------------------------------------------------------


def test_extensions_of_two_distributions_are_registered_with_their_driver(strangers):
    # An extension whose id comes first does not come before the specification of its hook.
    ids = [strangers.extension("calm"), strangers.driver(), strangers.extension("loud")]
    plugins = load_plugins(ids)
    assert plugins.problems == ()
    assert added(plugins) == {"calm": "test.calm", "loud": "test.loud"}
    assert plugins.registries.driven["styles"].driver == "test.greeter"
    assert plugins.registries.named()["styles"] is plugins.registries.driven["styles"].registry


def test_the_registry_of_a_family_is_frozen_after_the_boot(strangers):
    plugins = load_plugins([strangers.driver(), strangers.extension("loud")])
    registry = plugins.registries.driven["styles"].registry
    with pytest.raises(PluginError, match="frozen"):
        registry.add(registry.get("loud"))
    with pytest.raises(PluginError, match="boot"):
        plugins.registries.add_families("test.late", (Family("late", "late thing", object),))
    with pytest.raises(TypeError):
        plugins.registries.driven["late"] = None


def test_a_driver_may_extend_its_own_family(strangers):
    plugin = """
from svc.plugin import *
from svc_test_greeter.api import Style

class Plain(Style):
    name = "plain"

@hookimpl
def svc_register_styles(styles):
    styles.add(Plain())
"""
    driver = strangers.driver(plugin=plugin)
    plugins = load_plugins([driver, strangers.extension("loud")])
    assert plugins.problems == ()
    assert added(plugins) == {"loud": "test.loud", "plain": "test.greeter"}
    assert load_plugins([driver], families=("commands",)).problems == ()


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("raise RuntimeError('no luck')", ProblemKind.BROKEN, "no luck"),
        (
            HOOK + "def svc_register_styles(styles): styles.add(42)",
            ProblemKind.BROKEN,
            "not an instance of Style",
        ),
        (
            HOOK + "def svc_register_styles(styles): raise KeyError('x')",
            ProblemKind.BROKEN,
            "svc_register_styles",
        ),
        (
            HOOK + "def svc_register_styles(wrong): pass",
            ProblemKind.BROKEN,
            "wrong",
        ),
        (
            HOOK + "def svc_register_styels(styels): pass",
            ProblemKind.UNKNOWN_HOOK,
            "svc_register_styles",
        ),
        ("def svc_register_styles(styles): pass", ProblemKind.BROKEN, "@hookimpl"),
    ],
)
def test_a_broken_extension_is_named_and_the_others_go_on(strangers, source, kind, words):
    ids = [strangers.driver(), strangers.extension("broken", source), strangers.extension("loud")]
    plugins = load_plugins(ids)
    problem = only_problem(plugins, "test.broken")
    assert problem.kind is kind
    assert words in problem.message
    assert added(plugins) == {"loud": "test.loud"}


def test_everything_of_an_extension_that_fails_halfway_is_withdrawn(strangers):
    late = EXTENSION.format(family="styles", driver="svc_test_greeter", name="half")
    late = late.replace("health_checks.add(Check())", "raise RuntimeError('late')")
    plugins = load_plugins([strangers.driver(), strangers.extension("half", late)])
    assert "late" in only_problem(plugins, "test.half").message
    assert added(plugins) == {}


def test_of_two_extensions_with_one_name_always_the_same_one_stays(strangers):
    driver, first = strangers.driver(), strangers.extension("a", EXTENSION.format(
        family="styles", driver="svc_test_greeter", name="same"))  # fmt: skip
    second = strangers.extension("b", EXTENSION.format(
        family="styles", driver="svc_test_greeter", name="same"))  # fmt: skip
    for order in ([driver, first, second], [second, first, driver]):
        plugins = load_plugins(order)
        assert only_problem(plugins, second).kind is ProblemKind.DUPLICATE
        assert added(plugins) == {"same": first}


# A driver that is not there -------------------------------------------------------------------------------


def test_an_extension_rests_where_its_driver_is_not_installed(strangers):
    loud = strangers.extension("loud")
    plugins = load_plugins([loud])
    assert plugins.problems == ()
    assert plugins.registries.health_checks.owner("loud") == loud
    assert "styles" not in plugins.registries.named()
    (report,) = [item for item in describe_plugins(plugins) if item.id == loud]
    assert (report.rests, report.adds) == (["test.greeter:styles"], {"health_checks": ["loud"]})


def test_an_extension_rests_where_its_driver_is_not_allowed_and_the_driver_is_not_imported(strangers):
    strangers.driver()
    plugins = load_plugins([strangers.extension("loud")])
    assert plugins.problems == ()
    assert not any(name.startswith("svc_test_greeter") for name in sys.modules)


def test_a_misspelt_hook_is_found_although_the_driver_is_absent(strangers):
    source = HOOK + "def svc_register_styels(styels): pass"
    problem = only_problem(load_plugins([strangers.extension("loud", source)]), "test.loud")
    assert problem.kind is ProblemKind.UNKNOWN_HOOK
    assert "svc_register_styles" in problem.message


def test_a_hook_of_a_driver_that_the_descriptor_does_not_name_is_refused(strangers):
    plugins = load_plugins([strangers.driver(), strangers.extension("loud", extends=())])
    problem = only_problem(plugins, "test.loud")
    assert problem.kind is ProblemKind.UNKNOWN_HOOK
    assert "extends=('test.greeter:styles',)" in problem.message


def test_a_family_that_the_driver_does_not_have_is_named_with_the_right_spelling(strangers):
    loud = strangers.extension("loud", "", extends=("test.greeter:stiles",))
    problem = only_problem(load_plugins([strangers.driver(), loud]), loud)
    assert problem.kind is ProblemKind.UNKNOWN_HOOK
    assert "Did you mean styles?" in problem.message
    assert load_plugins([loud]).problems == ()


BROKEN_APIS = {
    "it raises": ("raise OSError('no api')", "no api"),
    "it exits": ("import sys; sys.exit(3)", "SystemExit"),
    "it has no families": ("", "FAMILIES"),
    "its families are empty": ("FAMILIES = ()", "FAMILIES"),
    "its families are no families": ("FAMILIES = ('styles',)", "FAMILIES"),
    "it names a family twice": (API.format(name="styles") + "FAMILIES *= 2", "twice"),
    "it has no specification": (
        "from svc.plugin import Family\nFAMILIES = (Family('styles', 'style', object),)",
        "no function svc_register_styles",
    ),
    "it specifies what is no family": (
        API.format(name="styles") + "\n@hookspec\ndef svc_dance(context): pass",
        "svc_dance",
    ),
    "its specification takes something else": (
        API.format(name="styles").replace("(styles: object)", "(things: object)"),
        "one argument, 'styles'",
    ),
    "its specification gives one result": (
        API.format(name="styles").replace("@hookspec", "@hookspec(firstresult=True)"),
        "@hookspec alone",
    ),
    "the name of its family is none": (
        "from svc.plugin import Family\nFAMILIES = (Family('Sty les', 'style', object),)",
        "lower-case",
    ),
    "its family has no title": (
        "from svc.plugin import Family\nFAMILIES = (Family('styles', '', object),)",
        "title",
    ),
    "its contract is none": (
        "from svc.plugin import Family\nFAMILIES = (Family('styles', 'style', 42),)",
        "contract",
    ),
    "its names are none": (
        "from svc.plugin import Family\nFAMILIES = (Family('styles', 'style', object, 42),)",
        "names",
    ),
}


@pytest.mark.parametrize("case", BROKEN_APIS)
def test_a_driver_with_a_broken_api_is_named_and_its_extensions_rest(strangers, case):
    api, words = BROKEN_APIS[case]
    driver, loud = strangers.driver(api=api), strangers.extension("loud")
    plugins = load_plugins([driver, loud])
    problem = only_problem(plugins, driver)
    assert problem.kind is ProblemKind.BROKEN
    assert words in problem.message
    assert plugins.registries.health_checks.owner("loud") == loud
    assert [finding.code for finding in plugin_findings(plugins)] == ["plugin.broken"]


def test_a_driver_whose_implementation_is_broken_takes_its_families_with_it(strangers):
    driver, loud = strangers.driver(plugin="raise RuntimeError('no luck')"), strangers.extension("loud")
    plugins = load_plugins([driver, loud])
    only_problem(plugins, driver)
    assert "styles" not in plugins.registries.named()
    assert [item.rests for item in describe_plugins(plugins) if item.id == loud] == [["test.greeter:styles"]]


def test_of_two_drivers_with_one_family_always_the_same_one_stays(strangers):
    first, second = strangers.driver("one"), strangers.driver("two")
    theirs, others = strangers.extension("calm", driver="one"), strangers.extension("loud", driver="two")
    for order in ([first, second, theirs, others], [others, theirs, second, first]):
        plugins = load_plugins(order)
        problem = only_problem(plugins, second)
        assert problem.kind is ProblemKind.DUPLICATE
        assert first in problem.message
        # What extends the other driver is not given to this one.
        assert added(plugins) == {"calm": theirs}
        assert plugins.registries.health_checks.owner("loud") == others


def test_families_of_the_kernel_cannot_be_driven(strangers):
    problem = only_problem(load_plugins([strangers.driver(family="routes")]), "test.greeter")
    assert problem.kind is ProblemKind.DUPLICATE
    assert "belongs to the kernel" in problem.message


@pytest.mark.parametrize(
    "fields",
    [
        {"families": "svc_x"},
        {"families": "svc_x.api:FAMILIES"},
        {"families": 42},
        {"extends": "query:index_types"},
        {"extends": ("query",)},
        {"extends": ("query:Index",)},
        {"extends": (42,)},
    ],
)
def test_a_descriptor_says_in_order_what_it_drives_and_extends(fields):
    with pytest.raises(PluginError):
        PluginDescriptor("test.x", "1", "s", (1, 1), "m", **fields)


# Boots that fill some families only ------------------------------------------------------------------------


def test_a_boot_for_commands_imports_neither_families_nor_extensions(strangers):
    driver = strangers.driver(plugin="")
    plugins = load_plugins([driver, strangers.extension("loud")], families=("commands",))
    assert plugins.problems == ()
    assert not plugins.registries.driven
    assert "svc_test_greeter.api" not in sys.modules


def test_a_boot_for_one_family_fills_that_one_alone(strangers):
    ids = [strangers.driver(), strangers.driver("other", "colours"), strangers.extension("loud")]
    plugins = load_plugins(ids, families=("test.greeter:styles",))
    assert plugins.problems == ()
    assert added(plugins) == {"loud": "test.loud"}
    assert len(plugins.registries.health_checks) == 0
    assert set(plugins.registries.driven) == {"styles"}


# Databases ------------------------------------------------------------------------------------------------


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
