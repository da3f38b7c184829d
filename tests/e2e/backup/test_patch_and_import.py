"""Patches between versions, imports of exports and patches, and promoting what was imported."""

from __future__ import annotations

import contextlib
import http.client
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from blake3 import blake3

from svc_blackbox.backups import BINARY, Source, export, imported, patch, send
from svc_blackbox.client import Client, assert_error, files
from svc_blackbox.prepared import run_svc
from svc_blackbox.server import Server
from svc_blackbox.versions import (
    contents,
    head_version,
    list_snapshots,
    log_entries,
    make_fork,
    make_snapshot,
    tree,
)

Save = Callable[..., Path]
REPORT = {
    "backup_type",
    "entries_imported",
    "chunks_imported",
    "files_imported",
    "directories_imported",
    "deletions_applied",
    "version_hash",
    "head_promoted",
    "warnings",
}


def test_an_export_and_two_patches_give_the_same_root_elsewhere(
    source: Source, client: Client, target: Client
) -> None:
    report = imported(target, export(client, snapshot="one"), promote="true")
    assert set(report) >= REPORT
    assert (report["version_hash"], report["head_promoted"]) == (source.roots["one"], True)
    assert (head_version(target), contents(target)) == (source.roots["one"], source.contents["one"])
    report = imported(target, patch(client, **{"from": "one", "to": "two"}), promote="true")
    assert report["deletions_applied"] >= 1
    assert (head_version(target), contents(target)) == (source.roots["two"], source.contents["two"])
    imported(target, patch(client, **{"from": "two"}), promote="true")
    assert (head_version(target), contents(target)) == (source.roots["HEAD"], source.contents["HEAD"])
    for name in ("one", "two"):
        assert contents(target, version=source.roots[name]) == source.contents[name]


def test_an_import_moves_head_only_when_asked(source: Source, client: Client, fresh_target: Client) -> None:
    fresh_target.store("/own", b"own")
    before = head_version(fresh_target)
    report = imported(fresh_target, export(client))
    assert (report["version_hash"], report["head_promoted"]) == (source.roots["HEAD"], False)
    assert (head_version(fresh_target), contents(fresh_target)) == (before, {"/own": b"own"})
    assert contents(fresh_target, version=source.roots["HEAD"]) == source.contents["HEAD"]
    response = fresh_target.post("/versions/promote", {"hash": source.roots["HEAD"]})
    assert (response.status, response.json()["promoted"], response.json()["head"]) == (
        200,
        True,
        source.roots["HEAD"],
    )
    assert contents(fresh_target) == source.contents["HEAD"]
    assert contents(fresh_target, version=before) == {"/own": b"own"}
    assert list_snapshots(fresh_target) == [] or all(
        item["kind"] == "automatic" for item in list_snapshots(fresh_target)
    )


def test_the_report_counts(source: Source, client: Client, fresh_target: Client) -> None:
    report = imported(fresh_target, export(client, snapshot="one"))
    assert report["backup_type"]
    assert report["files_imported"] == len(source.contents["one"]) or report["files_imported"] >= 5
    assert report["directories_imported"] >= 1
    assert report["chunks_imported"] >= 5
    assert report["entries_imported"] >= report["chunks_imported"]
    assert report["deletions_applied"] == 0
    assert report["warnings"] == []


def test_importing_twice_is_harmless(
    source: Source, client: Client, target: Client, new_server: Callable[..., Server]
) -> None:
    data = export(client)
    first = imported(target, data, promote="true")
    again = imported(target, data, promote="true")
    assert again["version_hash"] == first["version_hash"] == head_version(target)
    assert contents(target) == source.contents["HEAD"]


def test_what_is_there_is_not_stored_twice(
    source: Source, client: Client, new_server: Callable[..., Server]
) -> None:
    server = new_server("full")
    own = server.client()
    data = export(client)
    imported(own, data)
    before = server.database.stat().st_size
    imported(own, data)
    assert server.database.stat().st_size - before < len(data) // 4


def test_a_patch_holds_only_what_is_new(source: Source, client: Client) -> None:
    whole, small = export(client, snapshot="two"), patch(client, **{"from": "one", "to": "two"})
    assert len(small) < len(whole) / 10
    assert source.secrets["two"] in small
    assert source.secrets["one"] not in small
    assert source.secrets["HEAD"] not in small
    assert b"metadata-of-one" not in small


def test_patches_go_backwards_and_skip(source: Source, client: Client, target: Client) -> None:
    imported(target, export(client), promote="true")
    for start, end in (("HEAD", "one"), ("one", "HEAD"), ("HEAD", "two"), ("two", "one")):
        names = {"from": source.roots[start], "to": source.roots[end]}
        imported(target, patch(client, **names), promote="true")
        assert (head_version(target), contents(target)) == (source.roots[end], source.contents[end])


def test_a_patch_between_equal_versions_is_empty_and_fits(
    source: Source, client: Client, target: Client
) -> None:
    imported(target, export(client, snapshot="one"), promote="true")
    report = imported(target, patch(client, **{"from": "one", "to": source.roots["one"]}), promote="true")
    assert report["version_hash"] == source.roots["one"] == head_version(target)
    assert (report["chunks_imported"], report["deletions_applied"]) == (0, 0)


def test_a_patch_on_another_base_is_refused_and_names_both(
    source: Source, client: Client, fresh_target: Client
) -> None:
    imported(fresh_target, export(client, snapshot="one"), promote="true")
    fresh_target.store("/own", b"own")
    before = head_version(fresh_target)
    data = patch(client, **{"from": "one", "to": "two"})
    for query in ({}, {"promote": "true"}):
        error = assert_error(send(fresh_target, data, **query), 409, "CONFLICT")
        assert before in error["error"]
        assert source.roots["one"] in error["error"]
        assert "force" in error["error"]
        assert head_version(fresh_target) == before
        assert_error(fresh_target.get("/files/", version=source.roots["two"]), 404, "NOT_FOUND")
    report = imported(fresh_target, data, force="true")
    assert (report["version_hash"], report["head_promoted"]) == (source.roots["two"], False)
    assert head_version(fresh_target) == before
    assert contents(fresh_target, version=source.roots["two"]) == source.contents["two"]
    imported(fresh_target, data, force="true", promote="true")
    assert contents(fresh_target) == source.contents["two"]


def test_a_forced_patch_without_its_base_gives_no_broken_version(
    source: Source, client: Client, fresh_target: Client
) -> None:
    """The base's chunks are not there: whatever is answered, no version may lack its bytes."""
    before = head_version(fresh_target)
    response = send(fresh_target, patch(client, **{"from": "one", "to": "two"}), force="true", promote="true")
    assert 400 <= response.status < 500
    assert_error(response, response.status)
    assert head_version(fresh_target) == before
    assert_error(fresh_target.get("/files/", version=source.roots["two"]), 404, "NOT_FOUND")


def test_a_patch_without_promote_is_no_base_for_the_next(
    source: Source, client: Client, target: Client
) -> None:
    imported(target, export(client, snapshot="one"), promote="true")
    imported(target, patch(client, **{"from": "one", "to": "two"}))
    assert head_version(target) == source.roots["one"]
    assert_error(send(target, patch(client, **{"from": "two"})), 409, "CONFLICT")
    assert target.post("/versions/promote", {"hash": source.roots["two"]}).status == 200
    imported(target, patch(client, **{"from": "two"}), promote="true")
    assert tree(target) == source.trees["HEAD"]


def test_files_of_the_servers_backup_directory_are_imported(
    source: Source, client: Client, target: Client, target_server: Server
) -> None:
    """An import leaves its file as it was, and nothing beside it."""
    directory = target_server.database.parent / "backups"
    directory.mkdir(exist_ok=True)
    file, small = directory / "full.svcdb", directory / "patch.svcdb"
    file.write_bytes(export(client, snapshot="one"))
    small.write_bytes(patch(client, **{"from": "one", "to": "two"}))
    before = {path: path.read_bytes() for path in directory.iterdir()}
    response = target.post("/versions/import", {"file": "full.svcdb", "promote": True})
    assert response.status == 200, response.body
    assert set(response.json()) >= REPORT
    assert head_version(target) == source.roots["one"]
    response = target.post("/versions/import", {"file": str(small), "promote": False})
    assert (response.status, response.json()["head_promoted"]) == (200, False)
    assert target.post("/versions/import", {"file": "patch.svcdb", "promote": True}).status == 200
    assert contents(target) == source.contents["two"]
    assert {path: path.read_bytes() for path in directory.iterdir()} == before


def test_a_patch_goes_into_the_backup_directory_of_the_server(source: Source, client: Client) -> None:
    output = source.server.database.parent / "backups" / "small.svcdb"
    body = {"output": "small.svcdb", "from": "one", "to": "two"}
    assert client.post("/versions/diff", body).status == 200
    before = output.read_bytes()
    assert_error(client.post("/versions/diff", body), 409)
    assert output.read_bytes() == before


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"file": "/no/such/file.svcdb"}, (400, 404)),
        ({"file": "/"}, (400,)),
        ({"file": "/dev/zero"}, (400,)),
        ({"file": "no-such.svcdb"}, (404,)),
        ({"file": ""}, (400, 404)),
        ({"file": "a\x00b"}, (400,)),
        ({"file": 5}, (400,)),
        ({"promote": True}, (400,)),
        ({"file": "x", "promote": "yes"}, (400,)),
        ([], (400,)),
        (None, (400,)),
    ],
)
def test_a_bad_import_is_refused(target: Client, body: object, status: tuple[int, ...]) -> None:
    before = head_version(target)
    response = target.post("/versions/import", body)
    assert response.status in status
    assert_error(response, response.status)
    assert head_version(target) == before


def test_a_body_of_another_type_is_refused(source: Source, client: Client, target: Client) -> None:
    response = target.request("POST", "/versions/import", export(client), {"Content-Type": "image/png"})
    assert response.status in (400, 415)
    assert_error(response, response.status)


def test_a_chunked_upload_is_imported(source: Source, client: Client, target: Client) -> None:
    data = export(client)
    pieces = (data[start : start + 10_000] for start in range(0, len(data), 10_000))
    response = target.request(
        "POST", "/versions/import", pieces, {**BINARY, "Transfer-Encoding": "chunked"},
        encode_chunked=True, promote="true",
    )  # fmt: skip
    assert response.status == 200, response.body
    assert contents(target) == source.contents["HEAD"]


def test_an_upload_that_breaks_off_changes_nothing(
    source: Source, client: Client, fresh_target: Client
) -> None:
    from svc_blackbox.raw import RawConnection

    data = export(client)
    before = head_version(fresh_target)
    head = (
        "POST /versions/import?promote=true HTTP/1.1\r\nHost: x\r\n"
        f"Content-Type: application/octet-stream\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    for count in (100, len(data) // 2, len(data) - 1):
        with RawConnection(fresh_target.url) as connection:
            connection.send(head.encode() + data[:count])
            connection.finish_sending()
            response = connection.response()
            assert response is None or response.status == 400
    assert head_version(fresh_target) == before
    assert_error(fresh_target.get("/files/", version=source.roots["HEAD"]), 404, "NOT_FOUND")
    imported(fresh_target, data, promote="true")
    assert contents(fresh_target) == source.contents["HEAD"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 400),
        ({"to": "two"}, 400),
        ({"from": "no-such"}, 404),
        ({"from": "one", "to": "no-such"}, 404),
        ({"from": blake3(b"never").hexdigest()}, 404),
    ],
)
def test_a_patch_of_what_is_not_there(client: Client, query: dict[str, str], status: int) -> None:
    assert_error(client.request("POST", "/versions/diff", b"", **query), status)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"hash": "xyz"}, 400),
        ({"hash": "0" * 63}, 400),
        ({"hash": 5}, 400),
        ({"hash": None}, 400),
        ([], 400),
        (None, 400),
        ({"hash": blake3(b"never").hexdigest()}, 404),
    ],
)
def test_promoting_what_is_no_version(target: Client, body: object, status: int) -> None:
    before = head_version(target)
    assert_error(target.post("/versions/promote", body), status)
    assert head_version(target) == before


def test_promoting_any_version_that_was(target: Client) -> None:
    versions = [target.store("/f", b"%d" % number)["version"] for number in range(3)]
    make_fork(target, "draft")
    versions.append(target.put_file("/f", b"3", fork="draft").json()["version"])
    for number in (0, 3, 2, 1):
        response = target.post("/versions/promote", {"hash": versions[number]})
        assert (response.status, response.json()) == (
            200,
            {**response.json(), "promoted": True, "head": versions[number]},
        )
        assert target.read("/f") == b"%d" % number
    assert log_entries(target)[0]["version"] == versions[1]


def test_snapshots_and_forks_of_the_target_outlive_an_import(
    source: Source, client: Client, target: Client
) -> None:
    target.store("/own", b"own")
    made = make_snapshot(target, "one")
    make_fork(target, "draft")
    target.put_file("/own", b"fork", fork="draft")
    imported(target, export(client, snapshot="one"), promote="true")
    (kept,) = [item for item in list_snapshots(target) if item["name"] == "one"]
    assert kept == made
    assert (target.read("/own", snapshot="one"), target.read("/own", fork="draft")) == (b"own", b"fork")
    assert target.get(files("/own")).status == 404


def test_an_import_survives_a_kill_right_after(
    source: Source, client: Client, new_server: Callable[..., Server]
) -> None:
    server = new_server("killed")
    imported(server.client(), export(client), promote="true")
    server.kill()
    assert contents(server.start().client()) == source.contents["HEAD"]
    server.stop()
    run_svc("verify", "-D", server.database)


def test_writers_of_the_target_lose_nothing_during_an_import(
    source: Source, client: Client, target: Client
) -> None:
    data = export(client)
    stop, written = threading.Event(), []

    def write() -> None:
        with Client(target.url) as own:
            while not stop.is_set():
                path = f"/written/{len(written)}"
                own.store(path, path.encode())
                written.append(path)

    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(5):
        imported(target, data)
    stop.set()
    thread.join()
    assert set(tree(target)) == set(written)
    assert contents(target, version=source.roots["HEAD"]) == source.contents["HEAD"]


def test_many_imports_of_one_file_at_once(source: Source, client: Client, target: Client) -> None:
    data = export(client)

    def one(_: int) -> str:
        with Client(target.url, timeout=120) as own:
            version: str = imported(own, data)["version_hash"]
            return version

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(one, range(12))) == {source.roots["HEAD"]}
    assert contents(target, version=source.roots["HEAD"]) == source.contents["HEAD"]


@pytest.mark.timeout(240)
def test_a_kill_within_an_import_leaves_a_sound_database(
    new_server: Callable[..., Server], tmp_path: Path
) -> None:
    """HEAD is what it was, or what was imported; and the next import makes it whole."""
    maker, server = new_server("maker"), new_server("killed")
    client = maker.client()
    for number in range(40):
        client.store(f"/big/{number}", random.Random(number).randbytes(1_000_000))
    client.post(
        "/files/batch",
        {"operations": [{"op": "put", "path": f"/s/{n % 9}/{n}", "content": f"{n}"} for n in range(3000)]},
    )
    root, data = head_version(client), export(client)
    assert maker.stop() == 0
    server.client().store("/own", b"own")
    before = head_version(server.client())
    for delay in (0.02, 0.15, 0.4):
        sending = threading.Thread(target=send_until_the_end, args=(server.url, data))
        sending.start()
        time.sleep(delay)
        server.kill()
        sending.join()
        client = server.start().client(timeout=120)
        assert head_version(client) in (before, root)
        if head_version(client) == before:
            assert contents(client) == {"/own": b"own"}
    assert imported(client, data, promote="true")["version_hash"] == root == head_version(client)
    assert len(tree(client)) == 3040
    assert server.stop() == 0
    run_svc("verify", "-D", server.database)


def send_until_the_end(url: str, data: bytes) -> None:
    """Sends an import whose server may go away at any moment."""
    with contextlib.suppress(OSError, http.client.HTTPException), Client(url, timeout=120) as own:
        send(own, data, promote="true")
