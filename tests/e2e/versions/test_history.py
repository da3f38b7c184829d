"""The history of a file and of a directory: over the snapshots, and over every commit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from blake3 import blake3

from svc_blackbox.client import Client, assert_error, files, links
from svc_blackbox.server import Server
from svc_blackbox.versions import (
    PLURAL,
    Family,
    fresh,
    head_version,
    list_snapshots,
    log_entries,
    make_fork,
    make_snapshot,
)

FIELDS = {"snapshot", "timestamp", "change_type", "size", "content_type", "content_hash"}


def history(http: Client, path: str, **query: object) -> list[Any]:
    """All entries, page by page."""
    found: list[Any] = []
    cursor: dict[str, object] = {}
    while True:
        response = http.get(PLURAL.history(path), **{"limit": 1000, **query, **cursor})
        assert response.status == 200, response.body
        page = response.json()
        assert page["path"] == path
        found.extend(page["history"])
        if not page.get("has_more"):
            return found
        cursor = {"after": page["next_cursor"]}


def own(entries: list[Any], names: list[str]) -> list[Any]:
    """The entries of some snapshots."""
    return [entry for entry in entries if entry["snapshot"] in names]


def test_a_file_over_the_snapshots(http: Client, area: str, family: Family) -> None:
    path = f"{area}/f.txt"
    names: list[str] = []

    def snapshot() -> None:
        names.append(make_snapshot(http, fresh())["name"])
        time.sleep(0.003)

    http.store(f"{area}/other", b"0")
    snapshot()
    http.store(path, b"one", {"Content-Type": "text/plain"})
    snapshot()
    http.store(path, b"second", {"Content-Type": "text/plain"})
    snapshot()
    http.store(f"{area}/other", b"1")
    snapshot()
    http.delete(files(path))
    snapshot()
    http.store(path, b"third", {"Content-Type": "text/x-other"})
    snapshot()
    response = http.get(family.history(path))
    assert response.status == 200
    value = response.json()
    assert value["path"] == path
    entries = own(value["history"], names)
    assert [(entry["snapshot"], entry["change_type"]) for entry in entries] == [
        (names[5], "added"),
        (names[4], "deleted"),
        (names[3], "unchanged"),
        (names[2], "modified"),
        (names[1], "added"),
    ]
    snapshots = {item["name"]: item for item in list_snapshots(http)}
    for entry, content in zip(entries, (b"third", None, b"second", b"second", b"one"), strict=True):
        assert set(entry) >= FIELDS
        assert entry["timestamp"] == snapshots[entry["snapshot"]]["created_at"]
        if content is not None:
            assert (entry["size"], entry["content_hash"]) == (len(content), blake3(content).hexdigest())
    assert [entry["content_type"] for entry in (entries[0], entries[4])] == ["text/x-other", "text/plain"]


def test_what_never_existed_has_an_empty_history(http: Client, area: str, family: Family) -> None:
    http.store(f"{area}/f", b"x")
    make_snapshot(http, fresh())
    for query in ({}, {"commits": "true"}):
        response = http.get(family.history(f"{area}/never"), **query)
        assert response.status == 200
        assert response.json()["path"] == f"{area}/never"
        assert response.json()["history"] == []


def test_the_shorter_path_is_the_same_resource(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"x")
    make_snapshot(http, fresh())
    one, other = http.get(PLURAL.history(f"{area}/f")), http.get(f"/versions/history{area}/f")
    assert other.status == 200
    assert one.json() == other.json()


def test_a_file_over_every_commit(http: Client, area: str, family: Family) -> None:
    path = f"{area}/f"
    versions = [http.store(path, b"one")["version"]]
    http.store(f"{area}/elsewhere", b"x")
    versions.append(http.store(path, b"two")["version"])
    operations = [
        {"op": "put", "path": path, "content": "three"},
        {"op": "put", "path": f"{area}/g", "content": "g"},
    ]
    response = http.post("/files/batch", {"message": "both at once", "operations": operations})
    versions.append(response.json()["version"])
    versions.append(http.delete(files(path)).json()["version"])
    http.store(f"{area}/elsewhere", b"y")
    entries = http.get(family.history(path), commits="true").json()["history"]
    assert [(entry["change_type"], entry["version"]) for entry in entries] == [
        ("deleted", versions[3]),
        ("modified", versions[2]),
        ("modified", versions[1]),
        ("added", versions[0]),
    ]
    by_version = {entry["version"]: entry for entry in log_entries(http, limit=20)}
    for entry in entries:
        assert entry["snapshot"] is None
        assert set(entry) >= FIELDS | {"version", "sequence", "user", "message"}
        commit = by_version[entry["version"]]
        assert (entry["timestamp"], entry["sequence"]) == (commit["timestamp"], commit["sequence"])
    assert entries[1]["message"] == "both at once"
    assert [entry["size"] for entry in entries[1:]] == [5, 3, 3]
    assert entries[1]["content_hash"] == blake3(b"three").hexdigest()


def test_every_way_of_writing_shows(http: Client, area: str) -> None:
    a, b, c = f"{area}/d/a", f"{area}/d/b", f"{area}/e/b"
    http.store(a, b"a")
    assert http.send_json("PATCH", files(a), {"to": b}).status == 200
    assert http.send_json("PATCH", files(f"{area}/d"), {"to": f"{area}/e"}).status == 200
    assert http.post("/files/copy", {"paths": [c], "destination": f"{area}/d"}).status == 200
    assert http.delete(files(f"{area}/e"), recursive="true").status == 200
    expected = {a: ["deleted", "added"], b: ["added", "deleted", "added"], c: ["deleted", "added"]}
    for path, kinds in expected.items():
        assert [entry["change_type"] for entry in history(http, path, commits="true")] == kinds, path


def test_restores_and_promotes_show_in_the_history(http: Client, area: str) -> None:
    path = f"{area}/f"
    http.store(path, b"one")
    name = make_snapshot(http, fresh())["name"]
    http.store(path, b"two")
    make_fork(http, fork := fresh())
    http.put_file(path, b"three", fork=fork)
    assert http.post(PLURAL.fork(fork, "/promote"), {}).status == 200
    assert http.post(PLURAL.restore_path(path), {"snapshot": name}).status == 200
    http.delete(files(path))
    assert http.post(PLURAL.restore, {"name": name}).status == 200
    kinds = [(entry["change_type"], entry["size"]) for entry in history(http, path, commits="true")]
    assert [kind for kind, _ in kinds] == ["added", "deleted", "modified", "modified", "modified", "added"]
    assert [size for kind, size in kinds if kind != "deleted"] == [3, 3, 5, 3, 3]


def test_writes_on_a_fork_are_not_in_the_history_of_head(http: Client, area: str) -> None:
    path = f"{area}/f"
    http.store(path, b"one")
    make_fork(http, fork := fresh())
    http.put_file(path, b"on the fork", fork=fork)
    http.delete(files(path), fork=fork)
    assert [entry["change_type"] for entry in history(http, path, commits="true")] == ["added"]


def test_links_have_a_history(http: Client, area: str) -> None:
    for target in ("/a", "/b"):
        http.send_json("PUT", links(f"{area}/link"), {"target": target})
    http.delete(links(f"{area}/link"))
    entries = history(http, f"{area}/link", commits="true")
    assert [entry["change_type"] for entry in entries] == ["deleted", "modified", "added"]


def test_a_directory_has_a_history(http: Client, area: str) -> None:
    versions = [http.store(f"{area}/d/a", b"1")["version"]]
    http.store(f"{area}/elsewhere", b"x")
    versions.append(http.store(f"{area}/d/sub/b", b"2")["version"])
    batch = {"operations": [{"op": "put", "path": f"{area}/d/{name}", "content": "3"} for name in "acd"]}
    versions.append(http.post("/files/batch", batch).json()["version"])
    versions.append(http.delete(files(f"{area}/d"), recursive="true").json()["version"])
    entries = history(http, f"{area}/d", commits="true")
    assert [entry["version"] for entry in entries] == versions[::-1]
    assert [entry["change_type"] for entry in entries] == ["deleted", "modified", "modified", "added"]
    assert entries[1]["changes"] == {"added": 2, "modified": 1, "deleted": 0}
    assert entries[0]["changes"]["deleted"] == 4


def test_a_directory_over_the_snapshots(http: Client, area: str) -> None:
    names = []
    for content in (b"1", b"2"):
        http.store(f"{area}/d/a", content)
        names.append(make_snapshot(http, fresh())["name"])
        time.sleep(0.003)
    http.store(f"{area}/elsewhere", b"x")
    names.append(make_snapshot(http, fresh())["name"])
    entries = own(history(http, f"{area}/d"), names)
    assert [entry["change_type"] for entry in entries] == ["unchanged", "modified", "added"]


@pytest.mark.parametrize("commits", ["true", "false"])
def test_pages_neither_repeat_nor_skip(http: Client, area: str, commits: str) -> None:
    path = f"{area}/f"
    for number in range(11):
        http.store(path, b"%d" % number)
        make_snapshot(http, fresh())
    whole = history(http, path, commits=commits)
    assert len(whole) >= 11
    page = http.get(PLURAL.history(path), limit=4, commits=commits).json()
    found = page["history"]
    assert len(found) == 4
    http.store(path, b"meanwhile")
    make_snapshot(http, fresh())
    while page["has_more"]:
        page = http.get(PLURAL.history(path), limit=4, commits=commits, after=page["next_cursor"]).json()
        assert 0 < len(page["history"]) <= 4
        found += page["history"]
    assert found == whole


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"},
        {"limit": "-1"},
        {"limit": "x"},
        {"limit": "1e9"},
        {"after": "nonsense"},
        {"commits": "maybe"},
    ],
)
def test_a_bad_parameter_is_400(http: Client, area: str, family: Family, query: dict[str, str]) -> None:
    http.store(f"{area}/f", b"x")
    assert_error(http.get(family.history(f"{area}/f"), **query), 400, "INVALID_INPUT")
    if "commits" not in query:
        assert_error(http.get("/versions/log", **query), 400, "INVALID_INPUT")


def test_bad_paths_are_400_and_system_paths_404(http: Client, family: Family) -> None:
    for route in ("file-history", "file-restore"):
        method, body = ("GET", None) if route == "file-history" else ("POST", b'{"snapshot": "x"}')
        for path in ("a/../b", "a%00b", "%ff", "x" * 300):
            response = http.request(
                method, f"/{family.name}/{route}/{path}", body, {"Content-Type": "application/json"}
            )
            assert_error(response, 400, "INVALID_PATH")
        for path in (
            ".svc-system",
            ".svc-system/versions/snapshots",
            ".system/x",
            "%2Esvc-system",
            "./.svc-system",
        ):
            response = http.request(
                method, f"/{family.name}/{route}/{path}", body, {"Content-Type": "application/json"}
            )
            assert_error(response, 404, "NOT_FOUND")


def test_odd_names_have_a_history(http: Client, area: str) -> None:
    for name in ("☃ ü", "%41", "a?b#c", "x.history", "line~"):
        path = f"{area}/{name}"
        http.store(path, b"x")
        response = http.get("/versions/file-history" + quote(path), commits="true")
        assert [entry["change_type"] for entry in response.json()["history"]] == ["added"]
        assert response.json()["path"] == path


def test_history_survives_a_kill_and_a_lost_view(new_server: Callable[..., Server]) -> None:
    import shutil

    server = new_server()
    client = server.client()
    for number in range(10):
        client.store("/f", b"%d" % number)
        client.store(f"/other/{number}", b"x")
        if number % 3 == 0:
            make_snapshot(client, f"s{number}")
    expected = [
        history(client, path, commits=flag) for path in ("/f", "/other") for flag in ("true", "false")
    ]
    log = log_entries(client)
    server.kill()
    client = server.start().client()
    found = [history(client, path, commits=flag) for path in ("/f", "/other") for flag in ("true", "false")]
    assert found == expected
    server.stop()
    shutil.rmtree(server.database.with_name(server.database.name + ".d"))
    client = server.start().client()
    found = [history(client, path, commits=flag) for path in ("/f", "/other") for flag in ("true", "false")]
    assert found == expected
    assert log_entries(client) == log


def test_a_commit_is_in_the_history_as_soon_as_it_is_acknowledged(http: Client, area: str) -> None:
    for number in range(20):
        version = http.store(f"{area}/f", b"%d" % number)["version"]
        first = http.get(PLURAL.history(f"{area}/f"), commits="true", limit=1).json()["history"][0]
        assert first["version"] == version
        assert (
            http.get("/versions/log", limit=1).json()["commits"][0]["version"]
            == head_version(http)
            == version
        )
