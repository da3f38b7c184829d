"""Enabling: recorded in the database, seen by everyone who opens it, and never by accident."""

from __future__ import annotations

import subprocess
import sys

import pytest

from svc.database import Database
from svc.errors import CorruptRecord, InvalidInput, PluginError, PluginMissing, ReadOnly
from svc.log import RECORD_HEADER_SIZE
from svc.plugins import (
    ActivePlugins,
    ProblemKind,
    configure,
    describe_plugins,
    diagnose,
    disable,
    enable,
    enabled_plugins,
    initialize,
    load_plugins,
    parse_options,
    plugin_findings,
    require_enabled,
    require_fitting_options,
    select_auth_mode,
)
from svc.plugins.changing import change_settings
from svc.plugins.enabled import later_defaults
from svc_maintenance.repair import repair

SECRET = "correct horse battery staple"

DESCRIPTOR = """
import msgspec
from svc.plugins import PluginDescriptor, Secret

class Settings(msgspec.Struct):
    size: int = 3
    token: Secret = Secret()

PLUGIN = PluginDescriptor(
    {id!r}, {version!r}, "s", (1, 1), "{package}.plugin", Settings, reload={reload}, retired=("old",)
)
"""

RECORDER = """
calls = []

@hookimpl
def svc_enable(context):
    calls.append(("enable", context.configuration.size))
    if context.configuration.size > 100:
        raise ValueError("too large for me")

@hookimpl
def svc_disable(context):
    calls.append(("disable", context.plugin_id))
    raise RuntimeError("I do not want to go")

@hookimpl
def svc_start(context):
    calls.append(("start", context.configuration.size))
    if context.configuration.size == 13:
        raise RuntimeError("unlucky")

@hookimpl
def svc_stop(context):
    calls.append(("stop", context.configuration.size))
    raise RuntimeError("I do not want to stop")
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "enabling.svcdb"


@pytest.fixture
def recorder(install):
    def make(name="recorder", *, source=RECORDER, version="1.0", reload=True):
        identifier = f"test.{name}"
        descriptor = DESCRIPTOR.format(
            id=identifier, version=version, package=f"svc_test_{name}", reload=reload
        )
        return install(name, source, descriptor=descriptor, version=version)

    return make


def calls_of(name="recorder"):
    return sys.modules[f"svc_test_{name}.plugin"].calls


def test_an_enabled_plugin_is_seen_by_other_openings_and_other_processes(recorder, path, distributions):
    plugin_id = recorder()
    plugins = load_plugins([plugin_id])
    with Database(path) as writer, Database(path) as reader:
        assert plugin_id not in enabled_plugins(reader, plugins)
        enable(writer, plugins, plugin_id, {"size": 5})
        assert enabled_plugins(reader, plugins)[plugin_id].configuration.size == 5
        disable(reader, plugins, plugin_id)
        assert plugin_id not in enabled_plugins(writer, plugins)
        enable(writer, plugins, plugin_id, {"size": 6})
    code = (
        f"import sys; sys.path[:0] = {list(distributions.paths)!r}\n"
        "from svc.database import Database; from svc.plugins import *\n"
        f"plugins = load_plugins([{plugin_id!r}])\n"
        f"with Database({str(path)!r}) as database:\n"
        f"    print(enabled_plugins(database, plugins)[{plugin_id!r}].configuration.size)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "6\n"


def test_a_request_costs_one_read_of_head_while_nothing_changes(recorder, path):
    plugins = load_plugins([recorder()])
    with Database(path) as database:
        enable(database, plugins, "test.recorder")
        first = enabled_plugins(database, plugins)
        with database.transaction() as transaction:
            transaction.put(("file",), b"content", content_type="text/plain")
        assert enabled_plugins(database, plugins) is first
        configure(database, plugins, "test.recorder", {"size": 4})
        assert enabled_plugins(database, plugins) is not first


def test_enabling_again_keeps_settings_and_configuring_replaces_them(recorder, path):
    plugins = load_plugins([recorder()])
    with Database(path) as database:
        enable(database, plugins, "test.recorder", {"size": 5})
        enable(database, plugins, "test.recorder", {"token": SECRET})
        configuration = enabled_plugins(database, plugins)["test.recorder"].configuration
        assert (configuration.size, configuration.token.reveal()) == (5, SECRET)
        configure(database, plugins, "test.recorder", {"size": 7})
        configuration = enabled_plugins(database, plugins)["test.recorder"].configuration
        assert (configuration.size, configuration.token.reveal()) == (7, "")


def test_wrong_settings_change_nothing(recorder, path):
    plugins = load_plugins([recorder()])
    with Database(path) as database:
        enable(database, plugins, "test.recorder", {"size": 5})
        head = database.head()
        for settings, words in (({"size": "6"}, "size"), ({"size": 101}, "too large for me")):
            with pytest.raises(PluginError, match=words):
                configure(database, plugins, "test.recorder", settings)
        assert database.head() == head


def test_a_plugin_that_is_not_there_cannot_be_enabled(recorder, install, path):
    recorder()
    broken = install("broken", "raise RuntimeError('ill')")
    plugins = load_plugins([broken])
    with Database(path) as database:
        for plugin_id, words in (
            ("test.nowhere", "not installed"),
            ("test.recorder", "not allowed"),
            (broken, "ill"),
        ):
            with pytest.raises(PluginMissing, match=words):
                enable(database, plugins, plugin_id)
        for function in (
            lambda: configure(database, plugins, broken, {}),
            lambda: disable(database, plugins, broken),
        ):
            with pytest.raises(PluginMissing):
                function()
        assert not enabled_plugins(database, plugins)


def test_nothing_is_changed_in_a_database_open_for_reading(recorder, path):
    plugins = load_plugins([recorder()])
    Database(path).close()
    with Database(path, read_only=True) as database:
        assert not initialize(database, plugins)
        for function in (enable, disable):
            with pytest.raises(ReadOnly):
                function(database, plugins, "test.recorder")


def test_a_new_database_enables_the_allowed_plugins_once(recorder, path):
    plugins = load_plugins([recorder()])
    with Database(path) as database:
        assert initialize(database, plugins) == ()
        assert list(enabled_plugins(database, plugins)) == ["test.recorder"]
        disable(database, plugins, "test.recorder")
        initialize(database, plugins)
        assert not enabled_plugins(database, plugins)


def test_the_first_start_keeps_settings_that_were_made_before_it(recorder, path):
    plugins = load_plugins([recorder()])
    with Database(path) as database:
        enable(database, plugins, "test.recorder", {"size": 8})
        initialize(database, plugins)
        assert enabled_plugins(database, plugins)["test.recorder"].configuration.size == 8


def test_a_new_database_without_a_list_enables_the_default_set(
    recorder, install, path, distributions, monkeypatch
):
    one = recorder()
    install("two")
    monkeypatch.setattr("svc.plugins.loading.find_plugin_set", lambda: ((one, "test.gone"), ()))
    plugins = load_plugins()
    with Database(path) as database:
        problems = initialize(database, plugins)
        assert list(enabled_plugins(database, plugins)) == [one]
        assert [problem.plugin_id for problem in problems] == ["test.gone"]


def test_what_joins_the_default_set_later_is_known_to_an_older_database(recorder, path, monkeypatch):
    old, new = recorder("one"), recorder("two")
    defaults = [old]
    monkeypatch.setattr("svc.plugins.loading.find_plugin_set", lambda: (tuple(defaults), ()))
    with Database(path) as database:
        initialize(database, load_plugins())
        defaults += [new, "test.gone"]
        plugins = load_plugins()
        assert later_defaults(database, plugins) == (new,)
        enable(database, plugins, new)
        assert later_defaults(database, plugins) == ()
        disable(database, plugins, old)
        assert later_defaults(database, plugins) == (), "somebody decided that"


def test_a_database_that_needs_a_missing_plugin_says_which_and_serves_the_rest(recorder, path):
    one, two = recorder("one"), recorder("two")
    with Database(path) as database:
        both = load_plugins([one, two])
        enable(database, both, one)
        enable(database, both, two, {"token": SECRET})
        fewer = load_plugins([one])
        with Database(path) as other:
            found = diagnose(fewer, other)
            assert [(problem.plugin_id, problem.kind) for problem in found] == [
                (two, ProblemKind.NOT_ALLOWED)
            ]
            active = ActivePlugins(fewer, other)
            assert list(active.start()) == [one]
            active.stop()
            report = next(item for item in describe_plugins(fewer, other) if item.id == two)
            assert report.configuration == {"token": "********"}
            with pytest.raises(PluginMissing, match=two):
                require_enabled(other, fewer, two)
            disable(other, fewer, two)
            assert two not in enabled_plugins(other, fewer)


def test_a_plugin_that_is_gone_is_named_by_the_doctor(recorder, path, distributions):
    plugin_id = recorder()
    with Database(path) as database:
        enable(database, load_plugins([plugin_id]), plugin_id)
        distributions.close()
        problem = diagnose(load_plugins([]), database)[0]
        assert (problem.plugin_id, problem.kind) == (plugin_id, ProblemKind.MISSING)
        assert plugin_id in problem.message


def test_settings_that_a_newer_version_refuses_put_it_out_of_use_there(recorder, path):
    plugin_id = recorder()
    plugins = load_plugins([plugin_id])
    with Database(path) as database:
        with database.transaction() as transaction:
            record = f'{{"id": "{plugin_id}", "version": "0.1", "configuration": {{"gone": "{SECRET}"}}}}'
            transaction.put_system(("plugins", plugin_id), record.encode())
        plugin = enabled_plugins(database, plugins)[plugin_id]
        assert plugin.problem.kind is ProblemKind.CONFIGURATION
        assert "gone" in plugin.problem.message
        assert not ActivePlugins(plugins, database).start()
        shown = str([describe_plugins(plugins, database), diagnose(plugins, database), plugin])
        assert SECRET not in shown
        configure(database, plugins, plugin_id, {})
        assert diagnose(plugins, database) == []


def test_settings_that_are_retired_are_ignored(recorder, path):
    plugin_id = recorder()
    plugins = load_plugins([plugin_id])
    with Database(path) as database:
        with database.transaction() as transaction:
            record = f'{{"id": "{plugin_id}", "version": "0.1", "configuration": {{"old": 1, "size": 4}}}}'
            transaction.put_system(("plugins", plugin_id), record.encode())
        plugin = enabled_plugins(database, plugins)[plugin_id]
        assert plugin.problem is None
        assert plugin.configuration.size == 4
        assert diagnose(plugins, database) == []
        with pytest.raises(PluginError, match="old"):
            configure(database, plugins, plugin_id, {"old": 1})


def test_a_record_that_cannot_be_read_is_left_out(recorder, path):
    plugin_id = recorder()
    plugins = load_plugins([plugin_id])
    with Database(path) as database:
        with database.transaction() as transaction:
            transaction.put_system(("plugins", "test.garbage"), b"\xff{")
            transaction.put_system(("plugins", "test.liar"), b'{"id": "test.recorder", "version": "1"}')
        assert not enabled_plugins(database, plugins)


def test_an_older_version_than_the_database_was_configured_with_is_reported(recorder, path):
    plugin_id = recorder()
    plugins = load_plugins([plugin_id])
    with Database(path) as database:
        with database.transaction() as transaction:
            record = f'{{"id": "{plugin_id}", "version": "10.0", "configuration": {{}}}}'
            transaction.put_system(("plugins", plugin_id), record.encode())
        assert [problem.kind for problem in diagnose(plugins, database)] == [ProblemKind.TOO_OLD]


def test_plugins_start_and_stop_as_they_are_enabled_and_disabled(recorder, path):
    plugin_id = recorder()
    plugins = load_plugins([plugin_id])
    with Database(path) as database:
        active = ActivePlugins(plugins, database)
        assert not active.start()
        enable(database, plugins, plugin_id, {"size": 5})
        assert list(active.current()) == [plugin_id]
        assert active.context(plugin_id).configuration.size == 5
        configure(database, plugins, plugin_id, {"size": 6})
        assert active.context(plugin_id).configuration.size == 6
        disable(database, plugins, plugin_id)
        assert not active.is_active(plugin_id)
        assert active.context(plugin_id) is None
        enable(database, plugins, plugin_id, {"size": 7})
        active.current()
        active.stop()
        assert [call for call in calls_of() if call[0] in ("start", "stop")] == [
            ("start", 5), ("stop", 5), ("start", 6), ("stop", 6), ("start", 7), ("stop", 7),
        ]  # fmt: skip


def test_a_plugin_that_fails_to_start_is_out_of_use_and_reported(recorder, path):
    bad, good = recorder("bad"), recorder("good")
    plugins = load_plugins([bad, good])
    with Database(path) as database:
        enable(database, plugins, bad, {"size": 13})
        enable(database, plugins, good)
        active = ActivePlugins(plugins, database)
        assert list(active.start()) == [good]
        assert [(found.code, found.source) for found in active.findings()] == [("plugin.start-failed", bad)]
        assert active.findings()[0].detail == "RuntimeError: unlucky"
        assert "unlucky" not in active.findings()[0].message
        with database.transaction() as transaction:
            transaction.put_system(("other",), b"x")
        active.current()
        assert calls_of("bad").count(("start", 13)) == 1
        configure(database, plugins, bad, {"size": 1})
        assert sorted(active.current()) == [bad, good]
        assert active.findings() == ()
        configure(database, plugins, bad, {"size": 13})
        active.current()
        assert [found.code for found in active.findings()] == ["plugin.start-failed"]
        disable(database, plugins, bad)
        active.current()
        assert active.findings() == ()
        active.stop()


def test_what_the_first_start_could_not_enable_is_told_until_somebody_does_or_gives_up(install, path):
    refusing = "@hookimpl\ndef svc_enable(context):\n    raise RuntimeError('not today')\n"
    one, two = install("one", refusing), install("two", refusing)
    with Database(path) as database:
        assert len(initialize(database, load_plugins([one, two]))) == 2
        willing = load_plugins([two])
        assert [found.identity for found in plugin_findings(willing, database)] == [
            ("plugin.not-enabled", two, "")
        ]
        disable(database, willing, two)
        assert plugin_findings(willing, database) == []
        with pytest.raises(PluginMissing):
            disable(database, willing, two)


def test_whoever_disables_a_plugin_hears_that_it_failed_meanwhile(install, path):
    plugin_id = install("clinging", "@hookimpl\ndef svc_disable(context):\n    raise RuntimeError('no')\n")
    plugins = load_plugins([plugin_id])
    with Database(path) as database:
        enable(database, plugins, plugin_id)
        assert disable(database, plugins, plugin_id).endswith("RuntimeError: no")
        assert not enabled_plugins(database, plugins)
        enable(database, plugins, plugin_id)


def test_a_record_that_cannot_be_read_is_told_and_can_be_removed(recorder, path):
    plugin_id = recorder()
    plugins = load_plugins([plugin_id])
    with Database(path) as database:
        with database.transaction() as transaction:
            transaction.put_system(("plugins", plugin_id), b"\xff{")
        assert [found.identity for found in plugin_findings(plugins, database)] == [
            ("plugin.record", plugin_id, "")
        ]
        disable(database, plugins, plugin_id)
        assert plugin_findings(plugins, database) == []


def test_a_record_that_a_repair_could_not_save_is_told_and_can_be_written_anew(recorder, install, path):
    plugin_id, other = recorder(), install("other", "")
    plugins = load_plugins([plugin_id, other])
    with Database(path) as database:
        assert initialize(database, plugins) == ()
        system = database.system()
        places = []
        for one in (("plugins", plugin_id), ("plugin-set",)):
            entry = system.get(one)
            chunk = database.objects.read_record(entry.record).chunks[0] if entry.record else entry.hash
            places.append(database.objects.find(chunk))
    with path.open("r+b") as file:
        for place in places:
            file.seek(place.offset + RECORD_HEADER_SIZE + 2)
            file.write(b"rotten")
    with Database(path) as database, pytest.raises(CorruptRecord):
        enabled_plugins(database)
    assert len(repair(path).lost) == 2
    with Database(path) as database:
        assert list(enabled_plugins(database)) == [other]
        assert ("plugin.record", plugin_id, "") in {
            found.identity for found in plugin_findings(plugins, database)
        }
        enable(database, plugins, plugin_id)
        assert set(enabled_plugins(database)) == {plugin_id, other}
        assert plugin_findings(plugins, database) == []


def test_a_plugin_that_needs_a_restart_waits_for_it_and_is_disabled_at_once(recorder, path):
    plugin_id = recorder(reload=False)
    plugins = load_plugins([plugin_id])
    with Database(path) as database:
        active = ActivePlugins(plugins, database)
        active.start()
        enable(database, plugins, plugin_id)
        assert not active.current()
        active.stop()
        assert list(active.start()) == [plugin_id]
        configure(database, plugins, plugin_id, {"size": 9})
        assert active.context(plugin_id).configuration.size == 3
        disable(database, plugins, plugin_id)
        assert not active.current()
        active.stop()


def test_options_of_the_deployment_come_before_those_of_the_database(recorder, path):
    plugin_id = recorder()
    plugins = load_plugins([plugin_id])
    with Database(path) as database:
        enable(database, plugins, plugin_id, {"size": 5})
        changed = parse_options(plugins, [f"{plugin_id}.size=8"])
        assert enabled_plugins(database, changed)[plugin_id].configuration.size == 8
        assert enabled_plugins(database, plugins)[plugin_id].configuration.size == 5


CHECKED = """
import msgspec
from svc.plugins import PluginDescriptor

class Settings(msgspec.Struct):
    low: int = 1
    high: int = 2
    def __post_init__(self):
        if self.low > self.high:
            raise ValueError("Low is above high")

PLUGIN = PluginDescriptor("test.checked", "1", "s", (1, 1), "svc_test_checked.plugin", Settings)
"""


def test_an_option_that_does_not_fit_leaves_a_new_database_as_it_was(install, path):
    plugins = parse_options(load_plugins([install("checked", descriptor=CHECKED)]), ["test.checked.low=5"])
    with Database(path) as database:
        with pytest.raises(PluginError, match=r"low is above high. Given at the start: test\.checked\.low\."):
            initialize(database, plugins)
        assert database.head().sequence == 0


def test_an_option_fits_by_what_the_database_says(install, path):
    plain = load_plugins([install("checked", descriptor=CHECKED)])
    plugins = parse_options(plain, ["test.checked.low=5"])
    require_fitting_options(plugins, {"test.checked": {"high": 9}})
    # What is wrong without the option is not the option's fault: it is a finding, as ever.
    require_fitting_options(plugins, {"test.checked": {"low": 7}, "test.other": {}})
    with pytest.raises(PluginError):
        require_fitting_options(plugins, {"test.checked": {"high": 3}})


def test_an_auth_mode_whose_plugin_is_not_enabled_refuses_to_work(install, path):
    source = (
        "class Mode(AuthMode):\n    name = 'card'\n    def authenticate(self, credentials): return None\n"
        "@hookimpl\ndef svc_register_auth_modes(auth_modes): auth_modes.add(Mode())"
    )
    plugin_id = install("card", source)
    plugins = load_plugins([plugin_id])
    selected = select_auth_mode(plugins, "card")
    with Database(path) as database:
        with pytest.raises(PluginMissing, match="not enabled"):
            selected.bind(database, plugins)
        enable(database, plugins, plugin_id)
        assert selected.bind(database, plugins).name == "card"


MEDDLER = """
meanwhile = []

@hookimpl
def svc_enable(context):
    if meanwhile:
        meanwhile.pop()()
"""


def test_settings_that_are_changed_at_once_are_both_kept(recorder, path):
    plugin_id = recorder("meddler", source=MEDDLER)
    plugins = load_plugins([plugin_id])
    with Database(path) as database:
        enable(database, plugins, plugin_id)
        meanwhile = sys.modules["svc_test_meddler.plugin"].meanwhile
        meanwhile.append(lambda: change_settings(database, plugins, plugin_id, {"token": SECRET}))
        change_settings(database, plugins, plugin_id, {"size": 5})
        assert enabled_plugins(database)[plugin_id].settings == {"size": 5, "token": SECRET}
        meanwhile.append(lambda: change_settings(database, plugins, plugin_id, {"size": 6}))
        enable(database, plugins, plugin_id, {"token": "t"})
        assert enabled_plugins(database)[plugin_id].settings == {"size": 6, "token": "t"}


@pytest.mark.parametrize("change", [change_settings, configure])
def test_a_plugin_that_is_disabled_meanwhile_stays_disabled(recorder, path, change):
    plugin_id = recorder("meddler", source=MEDDLER)
    plugins = load_plugins([plugin_id])
    with Database(path) as database:
        enable(database, plugins, plugin_id)
        meanwhile = sys.modules["svc_test_meddler.plugin"].meanwhile
        meanwhile.append(lambda: disable(database, plugins, plugin_id))
        with pytest.raises(PluginMissing):
            change(database, plugins, plugin_id, {"size": 5})
        assert plugin_id not in enabled_plugins(database, plugins)


def test_only_settings_of_the_plugin_go_back_to_their_default(recorder, path):
    plugins = load_plugins([recorder()])
    with Database(path) as database:
        enable(database, plugins, "test.recorder", {"size": 5})
        with pytest.raises(InvalidInput) as refused:
            change_settings(database, plugins, "test.recorder", {}, [SECRET])
        assert SECRET not in str(refused.value)
        change_settings(database, plugins, "test.recorder", {}, ["size", "old"])
        assert enabled_plugins(database)["test.recorder"].settings == {}
