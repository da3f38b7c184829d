"""A full export: one version, complete in itself, and nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from svc_blackbox.backups import Source, content_of, export, patch, version_of
from svc_blackbox.client import Client, assert_error
from svc_blackbox.prepared import run_svc
from svc_blackbox.raw import RawConnection
from svc_blackbox.server import Server
from svc_blackbox.versions import (
    contents,
    head_version,
    list_forks,
    list_snapshots,
    log_entries,
    make_snapshot,
)

Save = Callable[..., Path]
NAMES = ["one", "two", "HEAD"]


def query(name: str) -> dict[str, str]:
    return {} if name == "HEAD" else {"snapshot": name}


@pytest.mark.parametrize("name", NAMES)
def test_an_export_is_a_database_of_that_version(
    source: Source, client: Client, saved: Save, tmp_path: Path, name: str
) -> None:
    file = saved(export(client, **query(name)))
    assert version_of(file) == source.roots[name]
    run_svc("verify", "-D", file)
    assert content_of(file, tmp_path / "out") == source.contents[name]
    assert (tmp_path / "out" / "link").readlink() == Path("d/e/kept")
    assert (tmp_path / "out" / "empty").is_dir() == (name != "HEAD")


def test_a_server_starts_on_an_export(source: Source, client: Client, saved: Save) -> None:
    server = Server(saved(export(client, snapshot="two"))).start()
    try:
        own = server.client()
        assert head_version(own) == source.roots["two"]
        assert source.roots["two"] in server.ready_line
        assert contents(own) == source.contents["two"]
        assert (list_snapshots(own), list_forks(own)) == ([], [])
        assert len([entry for entry in log_entries(own) if entry["version"] != entry["parent"]]) <= 1
        for name in ("one", "HEAD"):
            assert_error(own.get("/files/", version=source.roots[name]), 404, "NOT_FOUND")
        own.store("/goes/on", b"x")
        assert own.post("/versions/snapshots", {"name": "own"}).status == 201
        assert server.stop() == 0
        run_svc("verify", "-D", server.database)
    finally:
        server.close()


@pytest.mark.parametrize("name", NAMES)
def test_an_export_holds_nothing_of_other_versions_or_of_the_system(
    source: Source, client: Client, name: str
) -> None:
    data = export(client, **query(name))
    for other, secret in source.secrets.items():
        assert (secret in data) == (other == name)
    assert b"metadata-of-one" not in data
    assert (b"gone after one" in data) == (name == "one")


def test_the_answer_says_what_it_is(source: Source, client: Client) -> None:
    response = client.request("POST", "/versions/export", b"")
    assert response["Content-Type"] == "application/octet-stream"
    if "Content-Length" in response:
        assert int(response["Content-Length"]) == len(response.body)
    assert "immutable" not in (response.headers["Cache-Control"] or "")


def test_an_export_goes_into_the_backup_directory_of_the_server(source: Source, client: Client) -> None:
    directory = source.server.database.parent / "backups"
    for name, output in (("relative.svcdb", "relative.svcdb"), ("full.svcdb", str(directory / "full.svcdb"))):
        response = client.post("/versions/export", {"output": output, "snapshot": "one"})
        assert response.status == 200, response.body
        assert isinstance(response.json(), dict)
        assert version_of(directory / name) == source.roots["one"]
        before = (directory / name).read_bytes()
        assert_error(client.post("/versions/export", {"output": output}), 409)
        assert (directory / name).read_bytes() == before


def test_an_export_that_cannot_be_written_leaves_nothing(
    source: Source, client: Client, tmp_path: Path
) -> None:
    directory = source.server.database.parent / "backups"
    assert client.post("/versions/export", {"output": "there.svcdb"}).status == 200
    (directory / "dangling").symlink_to(tmp_path / "elsewhere")
    (directory / "out").symlink_to(tmp_path)
    before = sorted(directory.iterdir())
    for output in (
        directory / "there.svcdb" / "x.svcdb",
        directory / "dangling",
        directory / "out" / "x.svcdb",
        directory,
    ):
        response = client.post("/versions/export", {"output": str(output)})
        assert 400 <= response.status < 500, (output, response.status)
        assert_error(response, response.status)
    assert sorted(directory.iterdir()) == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("route", ["export", "diff", "import"])
@pytest.mark.parametrize("way", ["absolute", "up", "up from within", "etc"])
def test_no_request_reaches_a_file_elsewhere(
    source: Source, client: Client, tmp_path: Path, route: str, way: str
) -> None:
    victim = tmp_path / "victim.svcdb"
    place = {
        "absolute": str(victim),
        "up": "../source.svcdb",
        "up from within": str(source.server.database.parent / "backups" / ".." / "new.svcdb"),
        "etc": "/etc/passwd",
    }[way]
    body = {"file": place, "promote": True} if route == "import" else {"output": place, "from": "one"}
    if route == "export":
        del body["from"]
    response = client.post(f"/versions/{route}", body)
    assert_error(response, 400, "INVALID_INPUT")
    assert b"root:" not in response.body
    assert not victim.exists()
    assert not (source.server.database.parent / "new.svcdb").exists()


def test_unknown_versions_are_404_and_leave_no_file(source: Source, client: Client) -> None:
    assert_error(client.request("POST", "/versions/export", b"", snapshot="no-such"), 404, "NOT_FOUND")
    response = client.post("/versions/export", {"output": "unknown.svcdb", "snapshot": "no-such"})
    assert_error(response, 404, "NOT_FOUND")
    directory = source.server.database.parent / "backups"
    assert not directory.exists() or "unknown" not in "".join(path.name for path in directory.iterdir())


@pytest.mark.parametrize(
    "body", [{"output": 5}, {"output": ""}, {"snapshot": 5}, {"output": "x\x00y"}, [], "text"]
)
def test_a_bad_request_is_400(client: Client, body: object) -> None:
    assert_error(client.post("/versions/export", body), 400)


def test_an_empty_database_is_exported(target: Client, saved: Save) -> None:
    file = saved(export(target))
    assert version_of(file) == head_version(target)
    run_svc("verify", "-D", file)


def test_exporting_changes_nothing(source: Source, client: Client) -> None:
    before = (source.server.database.stat().st_size, head_version(client), len(log_entries(client)))
    export(client, snapshot="one")
    assert (source.server.database.stat().st_size, head_version(client), len(log_entries(client))) == before


def test_a_fork_is_exported_by_its_hash(new_server: Callable[..., Server], tmp_path: Path) -> None:
    server = new_server()
    client = server.client()
    client.store("/f", b"head")
    client.post("/versions/forks", {"name": "draft"})
    client.put_file("/f", b"fork", fork="draft")
    root = head_version(client, fork="draft")
    output = tmp_path / "fork.svcdb"
    run_svc("export", "-D", server.database, "--output", output, "--hash", root)
    assert version_of(output) == root
    assert content_of(output, tmp_path / "out") == {"/f": b"fork"}


def test_an_export_of_what_is_being_written_is_consistent(
    new_server: Callable[..., Server], saved: Save, tmp_path: Path
) -> None:
    """Every batch gives all files one content; an export must never hold two."""
    server = new_server("busy", "--workers", "2")
    names = [f"/d{number}/f" for number in range(40)]
    stop = threading.Event()

    def batch(client: Client, value: int) -> None:
        operations = [{"op": "put", "path": name, "content": f"{value} " * 500} for name in names]
        assert client.post("/files/batch", {"operations": operations}).status == 200

    with Client(server.url) as client:
        batch(client, 0)
        make_snapshot(client, "start")
        base = export(client)

    def write() -> None:
        value = 1
        with Client(server.url) as own:
            while not stop.is_set():
                batch(own, value)
                value += 1

    thread = threading.Thread(target=write)
    thread.start()
    with Client(server.url) as client:
        exports = [export(client) for _ in range(4)]
        patches = [patch(client, **{"from": "start"}) for _ in range(4)]
        at_shell = tmp_path / "shell.svcdb"
        run_svc("export", "-D", server.database, "--output", at_shell)
    stop.set()
    thread.join()
    roots = {entry["version"] for entry in log_entries(server.client())}
    targets = [saved(data, f"export{index}") for index, data in enumerate(exports)] + [at_shell]
    for number, data in enumerate(patches):
        targets.append(saved(base, f"patched{number}"))
        run_svc("import", "-D", targets[-1], "--file", saved(data, f"patch{number}"), "--promote")
    for number, file in enumerate(targets):
        assert version_of(file) in roots
        found = content_of(file, tmp_path / f"out{number}")
        assert set(found) == set(names)
        assert len(set(found.values())) == 1


def test_a_client_that_goes_away_leaves_the_server_well(source: Source, client: Client) -> None:
    for _ in range(3):
        with RawConnection(source.server.url) as connection:
            connection.send(b"POST /versions/export HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            connection.socket.recv(1000)
    assert client.get("/system/health").json()["status"] == "healthy"
    assert version_of_bytes(export(client)) > 0


def version_of_bytes(data: bytes) -> int:
    return len(data)


def test_exports_at_the_same_time(source: Source, saved: Save) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def one(name: str) -> bytes:
        with Client(source.server.url) as own:
            return export(own, **query(name))

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(one, NAMES * 2))
    for name, data in zip(NAMES * 2, results, strict=True):
        assert (
            json.loads(run_svc("info", "-D", saved(data), "--json").stdout)["version"] == source.roots[name]
        )
