"""The commit log, one commit, the changes between two versions, and who wrote which line."""

from __future__ import annotations

import itertools
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from blake3 import blake3

from svc_blackbox.client import Client, assert_error, files, links
from svc_blackbox.versions import (
    changes_of,
    compare,
    fresh,
    head_version,
    log_entries,
    make_fork,
    make_snapshot,
)

UNKNOWN = blake3(b"never a version").hexdigest()


def moves(entries: list[Any]) -> list[Any]:
    """The entries that changed the tree."""
    return [entry for entry in entries if entry["version"] != entry["parent"]]


def test_the_log_is_newest_first_and_a_chain(http: Client, area: str) -> None:
    versions = [http.store(f"{area}/{number}", b"x")["version"] for number in range(5)]
    make_snapshot(http, fresh())
    versions.append(http.delete(files(f"{area}/0")).json()["version"])
    entries = log_entries(http)
    assert [entry["version"] for entry in moves(entries)[:6]] == versions[::-1]
    for newer, older in itertools.pairwise(entries):
        assert newer["parent"] == older["version"]
        assert newer["sequence"] > older["sequence"]
        assert newer["timestamp"] >= older["timestamp"]
    top = moves(entries)[0]
    assert set(top) >= {"version", "parent", "sequence", "timestamp", "user", "message", "changes"}
    assert top["changes"] == {"added": 0, "modified": 0, "deleted": 1}
    assert moves(entries)[1]["changes"] == {"added": 1, "modified": 0, "deleted": 0}
    assert abs(top["timestamp"] - time.time() * 1000) < 60_000


def test_the_log_pages_and_goes_on_while_head_moves(http: Client, area: str) -> None:
    for number in range(12):
        http.store(f"{area}/{number}", b"x")
    whole = log_entries(http)
    page = http.get("/versions/log", limit=5).json()
    found = page["commits"]
    assert len(found) == 5
    http.store(f"{area}/meanwhile", b"x")
    while page["has_more"]:
        page = http.get("/versions/log", limit=500, after=page["next_cursor"]).json()
        found += page["commits"]
    assert found == whole
    assert page["next_cursor"] is None


def test_the_log_of_a_path_is_of_what_touched_it(http: Client, area: str) -> None:
    versions = []
    for number in range(3):
        versions.append(http.store(f"{area}/d/f", b"%d" % number)["version"])
        http.store(f"{area}/elsewhere", b"%d" % number)
    for path in (f"{area}/d/f", f"{area}/d"):
        assert [entry["version"] for entry in log_entries(http, path=path)] == versions[::-1]
    assert log_entries(http, path=f"{area}/never") == []
    page = http.get("/versions/log", path=f"{area}/d/f", limit=2).json()
    assert (len(page["commits"]), page["has_more"]) == (2, True)
    rest = http.get("/versions/log", path=f"{area}/d/f", after=page["next_cursor"]).json()
    assert [entry["version"] for entry in rest["commits"]] == versions[:1]


def test_the_log_of_a_fork(http: Client, area: str) -> None:
    base = http.store(f"{area}/f", b"one")["version"]
    make_fork(http, name := fresh())
    versions = [http.put_file(f"{area}/f", b"%d" % n, fork=name).json()["version"] for n in range(3)]
    http.store(f"{area}/head", b"x")
    found = [entry["version"] for entry in moves(log_entries(http, fork=name))]
    assert found[:3] == versions[::-1]
    assert head_version(http) not in found
    assert base in [*found, *(entry["parent"] for entry in log_entries(http, fork=name))]
    assert not set(versions) & {entry["version"] for entry in log_entries(http)}
    assert_error(http.get("/versions/log", fork=fresh("no")), 404, "NOT_FOUND")


def test_the_log_hides_the_system(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"x")
    for path in ("/.svc-system", "/.svc-system/versions", "/.system/x"):
        assert_error(http.get("/versions/log", path=path), 404, "NOT_FOUND")
        assert_error(
            http.get("/versions/compare", **{"from": "HEAD", "to": "HEAD", "path": path}), 404, "NOT_FOUND"
        )
        assert_error(http.get(f"/versions/blame{path}"), 404, "NOT_FOUND")
    assert_error(http.get("/versions/log", path="/a/../b"), 400, "INVALID_PATH")


def test_one_commit_with_its_changes(http: Client, area: str) -> None:
    http.store(f"{area}/gone", b"x")
    http.store(f"{area}/changed", b"x")
    batch = {
        "message": "three things",
        "operations": [
            {"op": "delete", "path": f"{area}/gone"},
            {"op": "put", "path": f"{area}/changed", "content": "y"},
            {"op": "put", "path": f"{area}/new", "content": "z"},
        ],
    }
    version = http.post("/files/batch", batch).json()["version"]
    response = http.get(f"/versions/commits/{version}")
    assert response.status == 200
    value = response.json()
    assert (value["version"], value["message"]) == (version, "three things")
    listed = value["changes"] if isinstance(value["changes"], list) else value["changes"]["items"]
    assert {
        (change["change_type"], change["path"]) for change in listed if change.get("entry_type") != 3
    } == {
        ("deleted", f"{area}/gone"),
        ("modified", f"{area}/changed"),
        ("added", f"{area}/new"),
    }
    assert_error(http.get(f"/versions/commits/{UNKNOWN}"), 404, "NOT_FOUND")
    assert_error(http.get("/versions/commits/nonsense"), 404, "NOT_FOUND")


def test_a_commit_shows_nothing_of_the_system(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"x")
    make_snapshot(http, fresh())
    make_fork(http, fresh())
    for entry in log_entries(http, limit=10)[:10]:
        body = http.get(f"/versions/commits/{entry['version']}").body
        assert b".svc-system" not in body
        assert b"/versions/snapshots" not in body


def test_comparing_two_versions(http: Client, area: str) -> None:
    for name in ("same", "changed", "gone", "d/inside"):
        http.store(f"{area}/{name}", name.encode())
    http.send_json("PUT", links(f"{area}/link"), {"target": "/a"})
    before = head_version(http)
    http.store(f"{area}/changed", b"now other", {"Content-Type": "text/plain"})
    http.store(f"{area}/new", b"new")
    http.delete(files(f"{area}/gone"))
    http.delete(files(f"{area}/d"), recursive="true")
    http.send_json("PUT", links(f"{area}/link"), {"target": "/b"})
    value = compare(http, before, "HEAD")
    assert (value["from"], value["to"]) == (before, head_version(http))
    assert changes_of(value) == {
        ("modified", f"{area}/changed"),
        ("added", f"{area}/new"),
        ("deleted", f"{area}/gone"),
        ("deleted", f"{area}/d/inside"),
        ("modified", f"{area}/link"),
    }
    assert [change["path"] for change in value["changes"]] == sorted(
        change["path"] for change in value["changes"]
    )
    by_path = {change["path"]: change for change in value["changes"]}
    changed = by_path[f"{area}/changed"]
    assert changed["entry_type"] == 2
    assert (changed["before"]["hash"], changed["before"]["size"]) == (blake3(b"changed").hexdigest(), 7)
    assert (changed["after"]["hash"], changed["after"]["size"]) == (blake3(b"now other").hexdigest(), 9)
    assert by_path[f"{area}/new"]["before"] is None
    assert by_path[f"{area}/gone"]["after"] is None
    assert by_path[f"{area}/link"]["entry_type"] == 8
    assert {key: value["totals"][key] for key in ("added", "modified", "deleted")}["added"] >= 1
    back = compare(http, "HEAD", before)
    opposite = {"added": "deleted", "deleted": "added", "modified": "modified"}
    assert changes_of(back) == {(opposite[kind], path) for kind, path in changes_of(value)}


def test_comparing_takes_every_name_of_a_version(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"one")
    snapshot = make_snapshot(http, fresh())
    moment = log_entries(http, limit=1)[0]["timestamp"]
    time.sleep(0.005)
    make_fork(http, fork := fresh())
    http.put_file(f"{area}/f", b"fork", fork=fork)
    http.store(f"{area}/f", b"two")
    names = {
        snapshot["name"]: snapshot["root_hash"],
        snapshot["root_hash"]: snapshot["root_hash"],
        "HEAD": head_version(http),
        f"forks/{fork}": head_version(http, fork=fork),
        datetime.fromtimestamp((moment + 1) / 1000, UTC).isoformat(): snapshot["root_hash"],
    }
    for one, root in names.items():
        for other, other_root in names.items():
            value = compare(http, one, other)
            assert (value["from"], value["to"]) == (root, other_root)
            assert bool(value["changes"]) == (root != other_root)


def test_comparing_below_a_path(http: Client, area: str) -> None:
    before = head_version(http)
    for name in ("d/a", "d/e/b", "c"):
        http.store(f"{area}/{name}", b"x")
    value = compare(http, before, "HEAD", path=f"{area}/d")
    assert changes_of(value) == {("added", f"{area}/d/a"), ("added", f"{area}/d/e/b")}
    assert compare(http, before, "HEAD", path=f"{area}/none")["changes"] == []


def test_comparing_a_version_with_itself_finds_nothing(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"x")
    value = compare(http, "HEAD", "HEAD")
    assert value["changes"] == []
    assert {key: value["totals"][key] for key in ("added", "modified", "deleted")} == {
        "added": 0,
        "modified": 0,
        "deleted": 0,
    }


def test_comparing_many_changes_streams_them_all(http: Client, area: str) -> None:
    before = head_version(http)
    operations = [{"op": "put", "path": f"{area}/{n % 7}/{n:05}", "content": "x"} for n in range(3000)]
    assert http.post("/files/batch", {"operations": operations}).status == 200
    value = compare(http, before, "HEAD", path=area)
    assert len(changes_of(value)) == 3000
    assert value["totals"]["added"] >= 3000


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"from": "HEAD", "to": UNKNOWN}, 404),
        ({"from": "no-such-snapshot", "to": "HEAD"}, 404),
        ({"from": "forks/no-such-fork", "to": "HEAD"}, 404),
        ({"to": "HEAD"}, 400),
        ({"from": "", "to": "HEAD"}, 400),
        ({"from": "HEAD", "to": "HEAD", "path": "/a/../b"}, 400),
    ],
)
def test_comparing_what_is_not_there(http: Client, query: dict[str, str], status: int) -> None:
    assert_error(http.get("/versions/compare", **query), status)


def test_head_is_what_is_compared_with_when_nothing_is_said(http: Client, area: str) -> None:
    before = head_version(http)
    http.store(f"{area}/f", b"x")
    value = http.get("/versions/compare", **{"from": before})
    assert value.status == 200
    assert value.json()["to"] == head_version(http)


def test_every_line_knows_its_commit(http: Client, area: str) -> None:
    path = f"{area}/f.txt"
    first = http.store(path, b"one\ntwo\nthree\n")["version"]
    http.store(f"{area}/elsewhere", b"x")
    second = http.store(path, b"one\nTWO\nthree\n")["version"]
    third = http.store(path, b"zero\none\nTWO\nthree\nfour\n")["version"]
    response = http.get(f"/versions/blame{path}")
    assert response.status == 200
    value = response.json()
    assert value["path"] == path
    assert [line["line"] for line in value["lines"]] == [1, 2, 3, 4, 5]
    assert [line["version"] for line in value["lines"]] == [third, first, second, first, third]
    log = {entry["version"]: entry for entry in log_entries(http, limit=10)}
    for line in value["lines"]:
        entry = log[line["version"]]
        assert (line["sequence"], line["timestamp"], line["user"]) == (
            entry["sequence"],
            entry["timestamp"],
            entry["user"],
        )


def test_a_line_that_comes_back_belongs_to_who_brought_it_back(http: Client, area: str) -> None:
    path = f"{area}/f.txt"
    first = http.store(path, b"a\nb\n")["version"]
    http.store(path, b"a\n")
    last = http.store(path, b"a\nb\n")["version"]
    lines = http.get(f"/versions/blame{path}").json()["lines"]
    assert [line["version"] for line in lines] == [first, last]


def test_blame_of_a_directory_and_of_bytes_is_the_last_commit_of_each(http: Client, area: str) -> None:
    old = http.store(f"{area}/d/a", b"\x00\xff\x00" * 100)["version"]
    http.store(f"{area}/d/b", b"x")
    new = http.store(f"{area}/d/b", b"\x00\x01\xff")["version"]
    for path, expected in ((f"{area}/d", {old, new}), (f"{area}/d/a", {old})):
        response = http.get(f"/versions/blame{path}")
        assert response.status == 200
        entries = response.json()["entries"]
        assert {entry["version"] for entry in entries} == expected


def test_blame_of_what_is_not_there_is_404(http: Client, area: str) -> None:
    assert_error(http.get(f"/versions/blame{area}/never"), 404, "NOT_FOUND")
    assert_error(http.get("/versions/blame/a/../b"), 400, "INVALID_PATH")


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"no end", b"\r\nx\r\n", b"a\x0bb\x0cc\x1c\xc2\x85\n", "☃\n".encode() * 3]
)
def test_blame_counts_lines_as_they_are(http: Client, area: str, content: bytes) -> None:
    version = http.store(f"{area}/f.txt", content, {"Content-Type": "text/plain"})["version"]
    response = http.get(f"/versions/blame{area}/f.txt")
    assert response.status == 200
    lines = response.json().get("lines", [])
    assert {line["version"] for line in lines} <= {version}
    count = content.count(b"\n") + (bool(content) and not content.endswith(b"\n"))
    assert len(lines) == count
