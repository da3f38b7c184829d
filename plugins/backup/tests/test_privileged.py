"""System data: out of a database and into one only with the root key; credentials never."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from svc.plugin import BackupRule, Database, PluginDescriptor, SystemPath, SystemPaths
from svc.plugins import accepts_root_key, load_plugins
from svc_backup.format import plan_export
from svc_maintenance.verification import verify
from svc_testing import TESTING_ROOT_KEY

SECRETS = {
    ("api-keys", "k1"): b"secret of an api key",
    ("refresh-tokens", "t1"): b"secret of a refresh token",
    ("magic-links", "m1"): b"secret of a magic link",
    ("users", "api-keys", "k2"): b"secret among the users",
    ("config", "auth", "magic-links", "m2"): b"secret in the settings",
    ("tasks", "t"): b"a task",
    ("elsewhere",): b"of nobody knows what",
}
KEPT = {
    ("users", "ann"): b'{"username": "ann"}',
    ("groups", "staff"): b'{"members": ["ann"]}',
    ("config", "site"): b'{"title": "ours"}',
    ("grants", "one"): b'{"path": "/"}',
}
ELSEWHERE = (SystemPath("elsewhere", BackupRule.INCLUDE),)


@pytest.fixture
def furnished(source):
    """The source with system data and two snapshots, one of which holds what HEAD does not."""
    with source.database.transaction() as transaction:
        for path, content in {**SECRETS, **KEPT}.items():
            transaction.put_system(path, content)
        transaction.set_ref("snapshots/before", source.first)
        transaction.set_ref("snapshots/a \u00e9/%2F" + "x" * 190, source.first)
        transaction.put_system(("versions", "snapshots", "before"), b'{"kind": "manual"}')
        transaction.set_ref("forks/draft", source.first)
        transaction.put_system(("versions", "forks", "draft"), b"{}")
    return source


def system_of(database: Database) -> dict[tuple[str, ...], bytes]:
    version = database.system()
    return {
        path: version.read_all(entry) for path, entry in version.walk(files_only=True) if path[0] != "refs"
    }


def test_a_plain_export_holds_no_system_data(furnished, tmp_path: Path) -> None:
    data = furnished.export(furnished.second)
    for content in {**SECRETS, **KEPT}.values():
        assert content not in data
    path = tmp_path / "x.svcdb"
    path.write_bytes(data)
    with Database(path) as exported:
        assert system_of(exported) == {}
        assert list(exported.refs()) == []


def test_a_privileged_export_holds_system_data_and_snapshots_and_no_credentials(
    furnished, tmp_path: Path
) -> None:
    data = furnished.export(furnished.second, with_system=True)
    for path, content in SECRETS.items():
        assert content not in data, path
    path = tmp_path / "x.svcdb"
    path.write_bytes(data)
    with Database(path) as exported:
        assert exported.head().sequence == 1
        held = system_of(exported)
        assert held == {**KEPT, ("versions", "snapshots", "before"): b'{"kind": "manual"}'}
        assert dict(exported.refs()) == dict(furnished.database.refs("snapshots"))
        version = exported.at(furnished.first)
        assert version.read_all(version.get(("many", "file-007.txt"))) == b"number 7\n"
        assert verify(exported).ok


def test_without_the_key_an_import_skips_the_systems_part_and_says_so(
    furnished, target: Database, take_in
) -> None:
    data = furnished.export(furnished.second, with_system=True)
    result = take_in(target, data, promote=True)
    assert "root key" in result.warnings[0]
    assert (result.system_entries, result.snapshots) == (0, 0)
    assert target.head().root == furnished.second
    assert system_of(target) == {}
    assert list(target.refs()) == []
    log = target.path.read_bytes()
    for content in KEPT.values():
        assert content not in log
    assert verify(target).ok


def test_with_the_key_it_takes_them(furnished, target: Database, take_in) -> None:
    with target.transaction() as transaction:
        transaction.put_system(("users", "bob"), b"here before")
        transaction.put_system(("users", "ann"), b"to be replaced")
    data = furnished.export(furnished.second, with_system=True)
    result = take_in(target, data, promote=True, with_system=True)
    held = system_of(target)
    assert held[("users", "bob")] == b"here before"
    assert {path: held[path] for path in KEPT} == KEPT
    assert dict(target.refs("snapshots")) == dict(furnished.database.refs("snapshots"))
    assert (result.system_entries, result.snapshots) == (len(KEPT) + 1, 2)
    assert result.warnings == ()
    assert verify(target).ok


def test_a_snapshot_of_the_same_name_is_kept(furnished, target: Database, take_in) -> None:
    with target.transaction() as transaction:
        transaction.put(("mine",), b"mine")
    mine = target.head().root
    with target.transaction() as transaction:
        transaction.set_ref("snapshots/before", mine)
        transaction.put_system(("versions", "snapshots", "before"), b"mine")
    data = furnished.export(furnished.second, with_system=True)
    result = take_in(target, data, with_system=True)
    assert dict(target.refs("snapshots"))["snapshots/before"] == mine
    assert system_of(target)[("versions", "snapshots", "before")] == b"mine"
    assert "before" in result.warnings[0]
    assert result.snapshots == 1


@pytest.mark.parametrize("name", ["api-keys", "magic-links", "refresh-tokens"])
def test_credentials_in_a_forged_file_are_not_taken(
    furnished, target: Database, take_in, name: str, hidden_rules
) -> None:
    """A file that somebody made with another rule in mind."""
    data = furnished.export(furnished.second, with_system=True, system_paths=hidden_rules)
    assert any(content in data for path, content in SECRETS.items() if path[0] == name)
    take_in(target, data, promote=True, with_system=True)
    assert set(system_of(target)) == {*KEPT, ("versions", "snapshots", "before")}


def test_what_no_plugin_declares_is_left_out_and_named(furnished, target: Database, take_in) -> None:
    with plan_export(furnished.database, furnished.second, system_paths=SystemPaths()) as outgoing:
        data = b"".join(outgoing.pieces())
        named = set(outgoing.counts.left_out)
    assert {"/users", "/api-keys", "/elsewhere", "/refs/snapshots", "/versions"} <= named
    for content in {**SECRETS, **KEPT}.values():
        assert content not in data
    assert take_in(target, data, with_system=True).warnings == ()


def test_what_no_plugin_declares_is_not_taken_and_named(
    furnished, target: Database, take_in, hidden_rules
) -> None:
    other = SystemPaths([PluginDescriptor("a.b", "1", "s", (1, 1), "m", system_paths=ELSEWHERE)])
    data = furnished.export(furnished.second, with_system=True, system_paths=other)
    result = take_in(target, data, with_system=True)
    assert result.warnings == ("System data that no plugin here declares were skipped: /elsewhere.",)
    assert system_of(target) == {}


def test_a_snapshot_may_not_hold_the_system_namespace_either(
    furnished, target: Database, take_in, refused, monkeypatch
) -> None:
    """A directory may have such a name, but not at the top: no version that comes in may."""
    with furnished.database.transaction() as transaction:
        transaction.put(("below", ".svc-system", "x"), b"x")
    below = furnished.database.at().get(("below",)).hash
    head = furnished.database.head().root
    monkeypatch.setattr(Database, "require_version", lambda *_: None)
    with furnished.database.transaction() as transaction:
        transaction.set_ref("snapshots/hostile", below)
    data = furnished.export(head, with_system=True)
    assert "system namespace" in refused(data, with_system=True).message
    assert "system namespace" in refused(furnished.export(below)).message


# -- at the shell ---------------------------------------------------------------------------------


@pytest.fixture
def svc_plugins() -> tuple[str, ...]:
    return ("backup", "test.holder")


@pytest.fixture
def given(furnished, holder) -> Path:
    """The source's file, with the plugins of ``run_svc`` enabled in it."""
    from svc.plugins import initialize
    from svc_testing import load_with_testing_auth

    initialize(furnished.database, load_with_testing_auth("backup"))
    return furnished.database.path


def test_the_commands_ask_for_the_right_key(given: Path, run_svc, tmp_path: Path) -> None:
    wrong = run_svc("export", "-D", given, "-o", "x.svcdb", "--root-key", "wrong")
    assert wrong.exit_code == 5
    assert "wrong" not in wrong.stderr.replace("This is not the root key", "")
    assert not (tmp_path / "x.svcdb").exists()
    right = run_svc("export", "-D", given, "-o", "x.svcdb", env={"SVC_ROOT_KEY": TESTING_ROOT_KEY})
    assert right.exit_code == 0, right.stderr
    assert "Snapshots" in right.stdout
    assert "were left out: /elsewhere." in right.stderr

    skipped = run_svc("import", "-D", "copy.svcdb", "x.svcdb", "--json")
    assert skipped.exit_code == 0, skipped.stderr
    assert "root key" in json.loads(skipped.stdout)["warnings"][0]
    assert "root key" in skipped.stderr
    assert run_svc("import", "-D", "copy.svcdb", "x.svcdb", "--root-key", "wrong").exit_code == 5
    taken = run_svc("import", "-D", "copy.svcdb", "x.svcdb", "--root-key", TESTING_ROOT_KEY)
    assert taken.exit_code == 0, taken.stderr
    with Database(tmp_path / "copy.svcdb") as copy:
        assert system_of(copy)[("users", "ann")] == KEPT[("users", "ann")]
        assert len(dict(copy.refs("snapshots"))) == 2


def test_the_mode_that_judges_the_key_can_be_named(given: Path, run_svc, tmp_path: Path) -> None:
    words = ("export", "-D", given, "--root-key", TESTING_ROOT_KEY)
    named = run_svc(*words, "-o", "x.svcdb", "--auth", "testing://anything")
    assert named.exit_code == 0, named.stderr
    unknown = run_svc(*words, "-o", "y.svcdb", env={"SVC_AUTH": "file:///keys"})
    assert (unknown.exit_code, "--auth file" in unknown.stderr) == (11, True)
    without_key = run_svc("export", "-D", given, "-o", "z.svcdb", env={"SVC_AUTH": "file:///keys"})
    assert without_key.exit_code == 0, without_key.stderr


def test_a_patch_takes_no_root_key(given: Path, run_svc) -> None:
    ran = run_svc("export", "-D", given, "-o", "x", "--since", "HEAD", "--root-key", TESTING_ROOT_KEY)
    assert ran.exit_code == 2


def test_where_no_mode_knows_keys_every_key_is_refused(target: Database) -> None:
    plugins = load_plugins(("backup",))
    assert not accepts_root_key(target, plugins, TESTING_ROOT_KEY)
