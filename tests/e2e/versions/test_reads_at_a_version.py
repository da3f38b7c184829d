"""Reads of an older or another state: what names it, what wins, and what comes back."""

from __future__ import annotations

import io
import itertools
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from blake3 import blake3

from svc_blackbox.client import Client, assert_error, files, links
from svc_blackbox.server import Server
from svc_blackbox.versions import (
    fresh,
    head_version,
    log_entries,
    make_fork,
    make_snapshot,
    tree,
)

PREFIXES = ["/files", "/engine"]
BAD_VERSIONS = [
    "",
    "x",
    "g" * 64,
    "0" * 63,
    "0" * 65,
    "HEAD",
    "0x" + "0" * 62,
    "\uff10" * 64,
    "0" * 63 + " ",
    "00" * 31 + "  ",
    "  " + "00" * 31,
]


class States:
    """A file whose content differs at a snapshot, a version, a fork, a time and HEAD."""

    def __init__(self, http: Client, area: str) -> None:
        self.path = f"{area}/f"
        self.names: dict[str, str] = {}
        http.store(self.path, b"at")
        self.names["at"] = str(log_entries(http)[0]["timestamp"])
        time.sleep(0.005)
        http.store(self.path, b"snapshot")
        self.names["snapshot"] = make_snapshot(http, fresh())["name"]
        self.names["version"] = http.store(self.path, b"version")["version"]
        make_fork(http, fork := fresh("fork"))
        http.put_file(self.path, b"fork", fork=fork)
        self.names["fork"] = fork
        http.store(self.path, b"head")


@pytest.fixture
def states(http: Client, area: str) -> States:
    return States(http, area)


ORDER = ("snapshot", "version", "fork", "at")


@pytest.mark.parametrize(
    "given", [names for count in range(5) for names in itertools.combinations(ORDER, count)], ids="+".join
)
def test_a_snapshot_wins_over_a_version_over_a_fork_over_a_time(
    http: Client, states: States, given: tuple[str, ...]
) -> None:
    expected = given[0].encode() if given else b"head"
    query = {name: states.names[name] for name in reversed(given)}
    for prefix in PREFIXES:
        response = http.get(prefix + states.path, **query)
        assert (response.status, response.body) == (200, expected), (given, response.body)


def test_what_loses_is_not_looked_at(http: Client, states: States) -> None:
    nonsense = {"version": "0" * 64, "fork": fresh("no-such")}
    assert http.read(states.path, snapshot=states.names["snapshot"], **nonsense) == b"snapshot"
    assert http.read(states.path, version=states.names["version"], fork=fresh("no-such")) == b"version"


def test_what_wins_decides_the_error(http: Client, states: States) -> None:
    response = http.get(files(states.path), snapshot=fresh("no-such"), version=states.names["version"])
    assert_error(response, 404, "NOT_FOUND")
    response = http.get(files(states.path), version="0" * 64, fork=states.names["fork"])
    assert_error(response, 404, "NOT_FOUND")


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("version", BAD_VERSIONS)
def test_a_version_that_is_no_hash_is_400(http: Client, states: States, prefix: str, version: str) -> None:
    for method in ("GET", "HEAD"):
        response = http.request(method, prefix + states.path, version=version)
        assert response.status == 400
        if method == "GET":
            assert_error(response, 400, "INVALID_INPUT")


@pytest.mark.parametrize("prefix", PREFIXES)
def test_an_unknown_version_snapshot_or_fork_is_404(http: Client, states: States, prefix: str) -> None:
    unknown = blake3(b"never a version").hexdigest()
    for query in ({"version": unknown}, {"snapshot": fresh("no")}, {"fork": fresh("no")}):
        for path in (states.path, "", "/no/such/file"):
            assert_error(http.get(prefix + path, **query), 404, "NOT_FOUND")


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_file_that_was_not_there_yet_is_404(http: Client, states: States, prefix: str) -> None:
    http.store(states.path + "-later", b"x")
    for name in ORDER:
        query = {name: states.names[name]}
        assert_error(http.get(f"{prefix}{states.path}-later", **query), 404, "NOT_FOUND")


def test_a_content_hash_is_no_version(http: Client, states: States) -> None:
    assert_error(http.get(files(states.path), version=blake3(b"head").hexdigest()), 404, "NOT_FOUND")


def test_the_root_of_the_system_tree_is_no_version(new_server: Callable[..., Server]) -> None:
    from svc.database import Database

    server = new_server()
    client = server.client()
    client.store("/f", b"x")
    with Database(server.database) as database:
        roots = {commit.system_root.hex() for commit in database.commits()} | {
            database.head().system_root.hex()
        }
    assert roots
    for root in roots:
        assert_error(client.get("/files/", version=root), 404, "NOT_FOUND")
        assert_error(client.get("/versions/compare", **{"from": root, "to": "HEAD"}), 404, "NOT_FOUND")
        assert_error(client.post("/versions/promote", {"hash": root}), 404, "NOT_FOUND")
        assert client.post("/versions/export", {}, snapshot=root).status == 404


@pytest.mark.parametrize("name", ORDER)
def test_headers_are_those_of_a_normal_read(http: Client, area: str, name: str) -> None:
    http.store(f"{area}/t.txt", b"text", {"Content-Type": "text/x-mine; charset=utf-8"})
    normal = http.get(files(f"{area}/t.txt"))
    make_snapshot(http, snapshot := fresh())
    make_fork(http, fork := fresh())
    time.sleep(0.005)
    query = {
        "snapshot": snapshot,
        "version": normal["X-Svc-Version"],
        "fork": fork,
        "at": str(int(time.time() * 1000)),
    }
    http_headers = {key.lower() for key in normal.headers} - {"cache-control", "vary"}
    time.sleep(0.005)
    http.store(f"{area}/t.txt", b"other text")
    for method in ("GET", "HEAD"):
        response = http.request(method, files(f"{area}/t.txt"), **{name: query[name]})
        assert response.status == 200
        assert {key.lower() for key in response.headers} - {"cache-control", "vary"} == http_headers
        for header in http_headers - {"x-request-id", "date"}:
            assert response[header] == normal[header], header


def test_a_read_by_version_may_be_kept_for_long(http: Client, area: str) -> None:
    version = http.store(f"{area}/f", b"one")["version"]
    make_snapshot(http, name := fresh())
    make_fork(http, fork := fresh())
    response = http.get(files(f"{area}/f"), version=version)
    parts = [part.strip() for part in response["Cache-Control"].split(",")]
    assert "immutable" in parts
    assert any(part.startswith("max-age=") and int(part[8:]) >= 86400 for part in parts)
    assert "private" in parts
    assert response["ETag"] == f'"{blake3(b"one").hexdigest()}"'
    kept = http.get(files(f"{area}/f"), {"If-None-Match": response["ETag"]}, version=version)
    assert (kept.status, kept["Cache-Control"]) == (304, response["Cache-Control"])
    for query in ({}, {"fork": fork}, {"snapshot": name}):
        assert "immutable" not in http.get(files(f"{area}/f"), **query)["Cache-Control"]


def test_an_error_at_a_version_is_not_kept(http: Client, area: str) -> None:
    version = http.store(f"{area}/f", b"one")["version"]
    response = http.get(files(f"{area}/missing"), version=version)
    assert response.status == 404
    assert "immutable" not in (response.headers["Cache-Control"] or "")


def test_ranges_and_conditions_work_at_a_version(http: Client, area: str) -> None:
    old = bytes(range(256)) * 1000
    version = http.store(f"{area}/f", old)["version"]
    http.store(f"{area}/f", b"short")
    response = http.get(files(f"{area}/f"), {"Range": "bytes=250000-250009"}, version=version)
    assert (response.status, response.body) == (206, old[250000:250010])
    assert response["Content-Range"] == "bytes 250000-250009/256000"
    assert http.get(files(f"{area}/f"), {"Range": "bytes=300000-"}, version=version).status == 416
    assert http.get(files(f"{area}/f"), {"If-Match": '"x"'}, version=version).status == 412


@pytest.mark.parametrize("prefix", PREFIXES)
def test_directories_are_listed_as_they_were(http: Client, area: str, prefix: str) -> None:
    for name in ("a.txt", "d/b.txt", "d/c.bin"):
        http.store(f"{area}/{name}", name.encode())
    http.send_json("PUT", links(f"{area}/link"), {"target": f"{area}/a.txt"})
    http.post("/files/mkdir", {"path": f"{area}/empty"})
    version, below = head_version(http), tree(http, area)
    make_snapshot(http, name := fresh())
    make_fork(http, fork := fresh())
    http.delete(files(area), recursive="true")
    http.store(f"{area}/new", b"x")
    for query in ({"version": version}, {"snapshot": name}, {"fork": fork}):
        assert http.names(area, **query) == ["a.txt", "d", "empty", "link"]
        assert tree(http, area, **query) == below
        items = http.listing(area, depth=-1, glob="**/*.txt", **query)["items"]
        assert [item["path"] for item in items] == [f"{area}/a.txt", f"{area}/d/b.txt"]
        page = http.get(prefix + area, limit=2, **query).json()
        assert [item["name"] for item in page["items"]] == ["a.txt", "d"]
        assert (page["total"], page["has_more"]) == (4, True)
        rest = http.get(prefix + area, after=page["next_cursor"], **query).json()
        assert [item["name"] for item in rest["items"]] == ["empty", "link"]
        assert http.read(f"{area}/link", **query) == b"a.txt"
        link = http.get(links(f"{area}/link"), **query)
        assert (link.status, link.json()["target"]) == (200, f"{area}/a.txt")


def test_cursors_go_on_at_a_version_while_head_moves(http: Client, area: str) -> None:
    for number in range(25):
        http.store(f"{area}/{number:02}", b"x")
    version = head_version(http)
    page = http.listing(area, limit=10, version=version)
    http.delete(files(area), recursive="true")
    names = [item["name"] for item in page["items"]]
    while page["has_more"]:
        page = http.listing(area, limit=10, version=version, after=page["next_cursor"])
        names += [item["name"] for item in page["items"]]
    assert names == [f"{number:02}" for number in range(25)]


def test_archives_and_fetches_at_a_version(http: Client, area: str) -> None:
    http.store(f"{area}/d/a", b"old a")
    http.store(f"{area}/d/b", b"old b")
    version = head_version(http)
    make_snapshot(http, name := fresh())
    make_fork(http, fork := fresh())
    http.store(f"{area}/d/a", b"new a")
    http.delete(files(f"{area}/d/b"))
    for query in ({"version": version}, {"snapshot": name}, {"fork": fork}):
        response = http.post("/files/download", {"paths": [f"{area}/d"]}, **query)
        with zipfile.ZipFile(io.BytesIO(response.body)) as archive:
            found = {entry: archive.read(entry) for entry in archive.namelist() if not entry.endswith("/")}
        assert sorted(found.values()) == [b"old a", b"old b"]
        answer = http.post("/files/fetch", {"paths": [f"{area}/d/a", f"{area}/d/b"]}, **query).json()
        assert [item["content"] for item in answer["items"]] == ["old a", "old b"]
        assert answer["version"] == version
    for route, body in (("/files/download", {"paths": [area]}), ("/files/fetch", {"paths": [f"{area}/d/a"]})):
        assert_error(http.post(route, body, snapshot=fresh("no")), 404, "NOT_FOUND")
        assert_error(http.post(route, body, version="zz"), 400, "INVALID_INPUT")


def test_writing_to_the_past_is_400(http: Client, states: States) -> None:
    head = head_version(http)
    for name in ("snapshot", "version"):
        query = {name: states.names[name]}
        assert_error(http.put_file(states.path, b"x", **query), 400, "INVALID_INPUT")
        assert_error(http.delete(files(states.path), **query), 400, "INVALID_INPUT")
        assert_error(http.send_json("PATCH", files(states.path), {"to": "/x"}, **query), 400, "INVALID_INPUT")
    assert head_version(http) == head


def test_a_time_names_what_head_was_then(http: Client, area: str) -> None:
    path, moments = f"{area}/f", []
    for number in range(4):
        http.store(path, b"%d" % number)
        moments.append(log_entries(http, limit=1)[0]["timestamp"])
        time.sleep(0.004)
    for number, moment in enumerate(moments):
        stamp = datetime.fromtimestamp(moment / 1000, UTC)
        later = stamp + timedelta(milliseconds=1)
        east = later.astimezone(timezone(timedelta(hours=5, minutes=30)))
        texts = [
            str(moment),
            str(moment + 1),
            stamp.isoformat(timespec="milliseconds"),
            later.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            later.replace(tzinfo=None).isoformat(timespec="milliseconds"),
            east.isoformat(timespec="milliseconds"),
        ]
        for text in texts:
            assert http.read(path, at=text) == b"%d" % number, text
        if number:
            assert http.read(path, at=str(moment - 1)) == b"%d" % (number - 1)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert http.read(path, at=tomorrow.date().isoformat()) == b"3"
    assert http.read(path, at=tomorrow.isoformat()) == b"3"


def test_before_the_first_commit_there_is_nothing(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"x")
    for text in ("1", "1999-12-31", "2001-01-01T00:00:00Z"):
        assert_error(http.get(files(f"{area}/f"), at=text), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-13-01",
        "2026-02-30",
        "2026-01-01T25:00:00Z",
        "12:00",
        "-1",
        "1e3",
        "9" * 40,
        "\x00",
        "\uff12026-01-01",
    ],
)
def test_a_time_that_is_none_is_400(http: Client, area: str, text: str) -> None:
    http.store(f"{area}/f", b"x")
    assert_error(http.get(files(f"{area}/f"), at=text), 400, "INVALID_INPUT")


def test_times_name_fork_writes_never(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"head")
    make_fork(http, name := fresh())
    time.sleep(0.004)
    http.put_file(f"{area}/f", b"fork", fork=name)
    time.sleep(0.004)
    assert http.read(f"{area}/f", at=str(int(time.time() * 1000))) == b"head"


@pytest.mark.parametrize("name", ["snapshot", "version", "fork", "at"])
def test_the_system_namespace_is_hidden_in_every_version(http: Client, states: States, name: str) -> None:
    query = {name: states.names[name]}
    for prefix in ("/files", "/engine", "/links"):
        for path in (
            "/.svc-system",
            "/.svc-system/versions/snapshots",
            "/.system/x",
            "/.svc-system/refs/snapshots",
        ):
            assert_error(http.get(prefix + path, **query), 404, "NOT_FOUND")
    assert not {".svc-system", ".system", "refs", "versions"} & set(http.names("/", **query))


def test_every_acknowledged_version_stays_readable(http: Client, area: str, tmp_path: Path) -> None:
    versions = {}
    for number in range(30):
        versions[http.store(f"{area}/f", b"%d" % number)["version"]] = b"%d" % number
    assert len(versions) == 30
    for version, content in versions.items():
        assert http.read(f"{area}/f", version=version) == content
        assert http.read(f"{area}/f", version=version.upper()) == content
