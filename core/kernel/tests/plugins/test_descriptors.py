"""What a descriptor says of its plugin: names that are its alone, and the plugins that it needs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from svc.database import Database
from svc.errors import Conflict, PluginError
from svc.plugins import (
    BackupRule,
    PluginDescriptor,
    StartOption,
    SyncRule,
    SystemPath,
    disable,
    enable,
    enabled_plugins,
    initialize,
    load_descriptors,
    load_plugins,
    plugin_findings,
    select_auth_mode,
)
from svc.plugins.claims import Claims

INCLUDE, SKIP = BackupRule.INCLUDE, BackupRule.SKIP


class Settings(msgspec.Struct):
    peers: str = ""


def described(plugin_id: str, **fields: Any) -> PluginDescriptor:
    return PluginDescriptor(plugin_id, "1.0", "Of a test", (1, 1), "m", **fields)


SOURCE = """
from svc.plugins import *

PLUGIN = PluginDescriptor({id!r}, "1.0", "s", (1, 1), {implementation!r}, {fields})
"""


@pytest.fixture
def declare(install):
    """Installs a plugin whose descriptor has the given fields, as source."""

    def install_declaring(name: str, fields: str = "", source: str = "", **options: Any) -> str:
        descriptor = SOURCE.format(id=f"test.{name}", implementation=f"svc_test_{name}.plugin", fields=fields)
        return install(name, source, descriptor=descriptor, **options)

    return install_declaring


@pytest.mark.parametrize(
    "fields",
    [
        {"needs": ("Not An Id",)},
        {"needs": ("test.one",)},
        {"needs": ["a"]},
        {"options": (StartOption("peers", "p"),)},
        {"options": (StartOption("others", "o"),), "configuration": Settings},
        {"options": (StartOption("--peers", "p", "peers"),), "configuration": Settings},
        {"options": (StartOption("peers", "two\nlines"),), "configuration": Settings},
        {"options": ("peers",), "configuration": Settings},
        {"auth_modes": ("With Space",)},
        {"response_headers": ("X: y",)},
        {"response_headers": ("X-A\r\nSet-Cookie",)},
        {"error_codes": ("lower",)},
        {"system_paths": (SystemPath("/absolute", INCLUDE),)},
        {"system_paths": (SystemPath("a//b", INCLUDE),)},
        {"system_paths": (SystemPath("../a", INCLUDE),)},
        {"system_paths": (SystemPath("*", INCLUDE),)},
        {"system_paths": (SystemPath("a", "include"),)},  # type: ignore[arg-type]
        {"system_paths": (SystemPath("a", INCLUDE, documents="b"),)},
        {"system_paths": (SystemPath("a", INCLUDE, sync="lww"),)},  # type: ignore[arg-type]
        {"system_paths": (SystemPath("a/*", INCLUDE, sync=SyncRule.LAST_WRITER),)},
        {"system_paths": (SystemPath("a", INCLUDE, sync=SyncRule.KEEP_LOSERS),)},
        {"system_paths": (SystemPath("refs/a", INCLUDE, sync=SyncRule.LAST_WRITER),)},
        {"system_paths": ("a",)},
    ],
)
def test_what_is_not_of_the_form_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(PluginError):
        described("test.one", **fields)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SystemPath("a", INCLUDE), SystemPath("a", SKIP)),
        (SystemPath("a", INCLUDE), SystemPath("a/b", INCLUDE)),
        (SystemPath("a/b/c", INCLUDE), SystemPath("a/b", INCLUDE)),
        (SystemPath("a/*/c", INCLUDE), SystemPath("a/b", INCLUDE)),
        (SystemPath("a/*/c", INCLUDE), SystemPath("a/b/*", INCLUDE)),
        (SystemPath("refs/marks", INCLUDE), SystemPath("refs/marks", INCLUDE)),
    ],
)
def test_two_plugins_cannot_own_the_same_path(one: SystemPath, other: SystemPath) -> None:
    claims = Claims()
    claims.add(described("test.one", system_paths=(one,)))
    with pytest.raises(PluginError, match=r"belongs to the plugin 'test\.one'") as caught:
        claims.add(described("test.two", system_paths=(SystemPath("free", SKIP), other)))
    assert caught.value.details["duplicate"]
    # What was refused holds nothing.
    claims.add(described("test.three", system_paths=(SystemPath("free", SKIP), SystemPath("b", SKIP))))


@pytest.mark.parametrize("path", ["plugins", "plugins/x", "plugin-set", "refs"])
def test_paths_of_the_kernel_are_its_own(path: str) -> None:
    with pytest.raises(PluginError, match="belongs to svc itself"):
        Claims().add(described("test.one", system_paths=(SystemPath(path, SKIP),)))


@pytest.mark.parametrize(
    "fields",
    [
        {"options": (StartOption("peers", "p"),), "configuration": Settings},
        {"auth_modes": ("magic",)},
        {"error_codes": ("OUT_OF_MAGIC",)},
    ],
)
def test_two_plugins_cannot_have_the_same_name(fields: dict[str, Any]) -> None:
    claims = Claims()
    claims.add(described("test.one", **fields))
    with pytest.raises(PluginError, match=r"belongs to the plugin 'test\.one'"):
        claims.add(described("test.two", **fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"options": (StartOption("port", "p", "peers"),), "configuration": Settings},
        {"options": (StartOption("root-key", "p", "peers"),), "configuration": Settings},
        {"error_codes": ("NOT_FOUND",)},
    ],
)
def test_no_plugin_can_have_a_name_of_the_kernel(fields: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match="belongs to svc itself"):
        Claims().add(described("test.one", **fields))


def test_the_later_of_two_that_claim_a_path_is_out_of_use_and_nothing_else(declare) -> None:
    path = 'system_paths=(SystemPath("shared", BackupRule.SKIP),)'
    first, second = declare("aaa", path), declare("bbb", path)
    other = declare("ccc")
    plugins = load_plugins([second, other, first])
    assert list(plugins.descriptors) == [first, other]
    (problem,) = plugins.problems
    assert (problem.plugin_id, problem.kind.value) == (second, "duplicate")
    assert [item.id for item in load_descriptors([second, other, first])] == [first, other]


def test_descriptors_are_read_without_the_plugins(declare) -> None:
    broken = declare("broken", 'auth_modes=("odd",)', "raise RuntimeError")
    assert [item.auth_modes for item in load_descriptors([broken, "not.there"])] == [("odd",)]
    with pytest.raises(Exception, match=r"--auth odd needs the plugin 'test\.broken', which is out of use"):
        select_auth_mode(load_plugins([broken]), "odd")


# -- needs ----------------------------------------------------------------------------------------

NEEDS = 'needs=("test.zdriver",)'


def test_what_a_plugin_needs_is_enabled_and_started_first(declare, tmp_path) -> None:
    user, driver = declare("auser", NEEDS), declare("zdriver")
    plugins = load_plugins([user, driver])
    assert plugins.problems == ()
    with Database(tmp_path / "x.svcdb") as database:
        assert initialize(database, plugins) == ()
        assert list(enabled_plugins(database, plugins)) == [driver, user]


def test_without_what_it_needs_a_plugin_is_not_enabled(declare, tmp_path) -> None:
    user, driver = declare("auser", NEEDS), declare("zdriver")
    plugins = load_plugins([user, driver])
    with Database(tmp_path / "x.svcdb") as database:
        with pytest.raises(PluginError, match=r"'svc plugins enable test\.zdriver' enables it"):
            enable(database, plugins, user)
        enable(database, plugins, driver)
        enable(database, plugins, user)
        with pytest.raises(Conflict, match=r"is needed by 'test\.auser': disable it first"):
            disable(database, plugins, driver)
        assert list(enabled_plugins(database, plugins)) == [driver, user]
        assert disable(database, plugins, user) is None
        assert disable(database, plugins, driver) is None


@pytest.mark.parametrize("installed", [True, False])
def test_where_what_it_needs_is_missing_a_plugin_is_out_of_use(declare, installed: bool) -> None:
    user = declare("auser", NEEDS)
    if installed:
        declare("zdriver")
    plugins = load_plugins([user])
    (problem,) = plugins.problems
    assert (problem.plugin_id, problem.kind.value) == (user, "needs")
    assert "'test.zdriver', which is not installed or not allowed here" in problem.message
    assert [finding.code for finding in plugin_findings(plugins)] == ["plugin.needs"]


def test_where_what_it_needs_breaks_later_a_plugin_rests_and_a_finding_says_so(declare, tmp_path) -> None:
    user, driver = declare("auser", NEEDS), declare("zdriver")
    plugins = load_plugins([user, driver])
    with Database(tmp_path / "x.svcdb") as database:
        initialize(database, plugins)
        with database.transaction() as transaction:
            transaction.delete_system(("plugins", driver))
        plugin = enabled_plugins(database, plugins)[user]
        assert plugin.problem is not None
        (finding,) = plugin_findings(plugins, database)
        assert (finding.code, finding.source) == ("plugin.needs", user)
        enable(database, plugins, driver)
        assert enabled_plugins(database, plugins)[user].problem is None


def test_plugins_that_need_each_other_are_left_out_of_a_new_database(declare, tmp_path) -> None:
    one, two = declare("one", 'needs=("test.two",)'), declare("two", 'needs=("test.one",)')
    plugins = load_plugins([one, two])
    with Database(tmp_path / "x.svcdb") as database:
        assert [problem.plugin_id for problem in initialize(database, plugins)] == [one, two]
