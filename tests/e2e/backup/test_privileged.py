"""The privileged backup: system data and snapshots for whoever has the root key, credentials for nobody.

The people, teams and keys are those of a third party's plugin; svc knows of them what its descriptor says.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc_blackbox.backups import BINARY, Source, content_of, export
from svc_blackbox.client import Client
from svc_blackbox.prepared import run_svc
from svc_blackbox.records import NODE, assemble, parse, substitute
from svc_blackbox.server import Server, svc_environment, svc_program
from svc_blackbox.versions import contents, head_version, list_snapshots, snapshot_names
from svc_testing import DistributionFactory

SYSTEM = {("people", "ann"): b"marker-of-a-user" * 9, ("teams", "staff"): b"marker-of-a-group" * 9}
CREDENTIALS = {
    ("passkeys", "one"): b"marker-of-a-key" * 9,
    ("renewals", "one"): b"marker-of-a-token" * 9,
    ("mailings", "one"): b"marker-of-a-link" * 9,
}

ACME = """
from svc.plugins import BackupRule, PluginDescriptor, SystemPath

INCLUDE, SECRET = BackupRule.INCLUDE, BackupRule.SECRET
PLUGIN = PluginDescriptor(
    "acme.people", "1.0", "Keeps people, teams and their keys", (1, 1), "svc_acme_people",
    system_paths=(
        *(SystemPath(path, INCLUDE) for path in ("people", "teams", "extras")),
        *(SystemPath(path, SECRET) for path in ("passkeys", "renewals", "mailings")),
    ),
)
"""


@pytest.fixture(scope="module", autouse=True)
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DistributionFactory]:
    """Installs the third party's plugin for the processes of this module."""
    distributions = DistributionFactory(tmp_path_factory.mktemp("acme"), in_process=False)
    distributions.install(
        "svc-acme-people",
        modules={"svc_acme_people": ACME},
        entry_points={"acme.people": "svc_acme_people:PLUGIN"},
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", distributions.environment()["PYTHONPATH"])
        yield distributions


@pytest.fixture(scope="module")
def furnished(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source with users, groups and credentials in its system tree."""
    from svc.database import Database

    with Client(source.server.url) as client:
        head_version(client)
    place = tmp_path_factory.mktemp("furnished") / "furnished.svcdb"
    shutil.copyfile(source.server.database, place)
    with Database(place) as database, database.transaction() as transaction:
        for path, content in {**SYSTEM, **CREDENTIALS}.items():
            transaction.put_system(path, content)
    return place


@pytest.fixture(scope="module")
def key(furnished: Path) -> str:
    """The root key of it, and of its copies."""
    return new_root_key(furnished)


@pytest.fixture(scope="module")
def privileged(furnished: Path, key: str) -> Path:
    """A privileged export of it."""
    output = furnished.with_name("privileged.svcdb")
    run_svc("export", "-D", furnished, "--output", output, "--root-key", key)
    return output


def new_root_key(database: Path) -> str:
    """Makes a root key for a database."""
    (key,) = re.findall(r"svc_k_\w+", run_svc("reset-root-key", "-D", database).stdout.decode())
    return str(key)


def system_contents(database: Path) -> dict[tuple[str, ...], bytes]:
    """What stands below the names of this module in a system tree."""
    from svc.database import Database

    with Database(database, read_only=True) as opened:
        system = opened.system()
        return {
            path: system.read_all(entry)
            for path in [*SYSTEM, *CREDENTIALS]
            if (entry := system.get(path)) is not None
        }


def test_it_holds_users_groups_and_every_snapshot(source: Source, privileged: Path, tmp_path: Path) -> None:
    run_svc("verify", "-D", privileged)
    server = Server(shutil.copyfile(privileged, tmp_path / "opened.svcdb")).start()
    try:
        client = server.client()
        assert contents(client) == source.contents["HEAD"]
        for name in ("one", "two"):
            assert contents(client, snapshot=name) == source.contents[name]
        (one,) = [item for item in list_snapshots(client) if item["name"] == "one"]
        assert one["metadata"] == {"note": "metadata-of-one"}
    finally:
        server.close()
    assert system_contents(privileged) == SYSTEM


def test_where_the_plugin_is_gone_its_data_are_neither_given_nor_taken(
    furnished: Path, key: str, privileged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH")
    output, target = tmp_path / "output.svcdb", tmp_path / "target.svcdb"
    said = run_svc("export", "-D", furnished, "--output", output, "--root-key", key).stderr.decode()
    assert "left out: /mailings, /passkeys, /people, /renewals, /teams." in said
    content = output.read_bytes()
    for marker in {**SYSTEM, **CREDENTIALS}.values():
        assert marker[:16] not in content
    run_svc("put", "-D", target, "-", "/own", stdin=b"own")
    own_key = ("--root-key", new_root_key(target))
    said = run_svc("import", "-D", target, "--file", privileged, "--promote", *own_key).stderr.decode()
    assert "no plugin here declares were skipped: /people, /teams." in said
    assert system_contents(target) == {}
    assert b'"one"' in run_svc("snapshot", "list", "-D", target, "--json").stdout


def test_no_credential_is_in_any_backup(furnished: Path, privileged: Path, tmp_path: Path) -> None:
    plain, small = tmp_path / "plain.svcdb", tmp_path / "patch.svcdb"
    run_svc("export", "-D", furnished, "--output", plain)
    run_svc("diff", "-D", furnished, "--output", small, "--from", "one")
    original = furnished.read_bytes()
    for content in CREDENTIALS.values():
        assert content[:16] in original
        for file in (privileged, plain, small):
            assert content[:16] not in file.read_bytes()
    for content in SYSTEM.values():
        assert content[:16] in privileged.read_bytes()
        for file in (plain, small):
            assert content[:16] not in file.read_bytes()


def test_without_the_root_key_only_the_files_come_in(
    source: Source, privileged: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.svcdb"
    run_svc("put", "-D", target, "-", "/own", stdin=b"own")
    result = run_svc("import", "-D", target, "--file", privileged, "--promote")
    assert b"skipped" in (result.stdout + result.stderr).lower()
    assert content_of(target, tmp_path / "out") == source.contents["HEAD"]
    assert system_contents(target) == {}
    listed = run_svc("snapshot", "list", "-D", target, "--json").stdout
    assert b'"one"' not in listed
    assert b'"two"' not in listed


def test_with_the_root_key_everything_comes_in(source: Source, privileged: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.svcdb"
    run_svc("put", "-D", target, "-", "/own", stdin=b"own")
    run_svc("snapshot", "create", "own", "-D", target)
    run_svc("import", "-D", target, "--file", privileged, "--promote", "--root-key", new_root_key(target))
    assert system_contents(target) == SYSTEM
    assert content_of(target, tmp_path / "out") == source.contents["HEAD"]
    for name in ("one", "two"):
        assert content_of(target, tmp_path / name, "--at", name) == source.contents[name]
    assert content_of(target, tmp_path / "own", "--at", "own") == {"/own": b"own"}
    run_svc("verify", "-D", target)


def test_the_key_may_stand_in_the_environment(furnished: Path, key: str, tmp_path: Path) -> None:
    output = tmp_path / "x.svcdb"
    environment = {**svc_environment(), "SVC_ROOT_KEY": key}
    command = [svc_program(), "export", "-D", str(furnished), "--output", str(output)]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert key.encode() not in done.stdout + done.stderr + output.read_bytes()
    assert system_contents(output) == SYSTEM


def test_over_http_system_data_are_skipped_with_a_warning(
    source: Source, privileged: Path, target: Client
) -> None:
    before = snapshot_names(target)
    response = target.request("POST", "/versions/import", privileged.read_bytes(), BINARY, promote="true")
    assert response.status == 200, response.body
    assert response.json()["warnings"]
    assert contents(target) == source.contents["HEAD"]
    assert snapshot_names(target) == before


def test_an_export_over_http_is_never_privileged(new_server: Callable[..., Server], furnished: Path) -> None:
    copy = shutil.copyfile(furnished, furnished.with_name("served.svcdb"))
    server = Server(copy).start()
    try:
        data = export(server.client())
    finally:
        server.close()
    for content in {**SYSTEM, **CREDENTIALS}.values():
        assert content[:16] not in data


def test_credentials_that_somebody_put_into_a_file_are_not_taken(
    furnished: Path, key: str, tmp_path: Path
) -> None:
    """A forged backup: what had another name stands where keys stand, and every hash is right."""
    from svc.database import Database

    place, output = tmp_path / "place.svcdb", tmp_path / "output.svcdb"
    shutil.copyfile(furnished, place)
    with Database(place) as database, database.transaction() as transaction:
        transaction.put_system(("extras", "one"), CREDENTIALS["passkeys", "one"])
    run_svc("export", "-D", place, "--output", output, "--root-key", key)
    header, records = parse(output.read_bytes())
    forged = [
        assemble(header, substitute(records, b"\x66extras", b"\x68passkeys", (NODE,))),
        assemble(header, substitute(records, b"\x66people", b"\x68renewals", (NODE,))),
    ]
    live = tmp_path / "live.svcdb"
    shutil.copyfile(output, live)
    with Database(live) as database, database.transaction() as transaction:
        for path, content in CREDENTIALS.items():
            transaction.put_system(path, content)
    target = tmp_path / "target.svcdb"
    run_svc("put", "-D", target, "-", "/own", stdin=b"own")
    own_key = ("--root-key", new_root_key(target))
    for number, data in enumerate([*forged, live.read_bytes()]):
        file = tmp_path / f"forged-{number}.svcdb"
        file.write_bytes(data)
        run_svc("import", "-D", target, "--file", file, "--promote", *own_key, check=False)
        assert not set(system_contents(target)) & set(CREDENTIALS), number
    run_svc("verify", "-D", target)
