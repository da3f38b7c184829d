"""Going back: the whole tree, one file, one directory; always behind a safety snapshot."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from blake3 import blake3

from svc_blackbox.client import Client, assert_error, files, links
from svc_blackbox.server import Server
from svc_blackbox.versions import (
    PLURAL,
    Family,
    contents,
    fresh,
    head_version,
    list_snapshots,
    make_fork,
    make_snapshot,
    snapshot_names,
    tree,
)


def safety_snapshot(http: Client, answer: dict[str, object], root: str) -> None:
    """Checks that an answer names an automatic snapshot of the state before."""
    name = answer["auto_snapshot"]
    assert isinstance(name, str)
    assert name.startswith("pre-restore-")
    (found,) = [item for item in list_snapshots(http) if item["name"] == name]
    assert (found["root_hash"], found["kind"]) == (root, "automatic")


def test_a_snapshot_is_restored_whole(http: Client, area: str, family: Family) -> None:
    for name in ("a", "d/b", "d/c"):
        http.store(f"{area}/{name}", name.encode())
    http.send_json("PUT", links(f"{area}/link"), {"target": f"{area}/a"})
    old = make_snapshot(http, name := fresh())
    http.store(f"{area}/a", b"changed")
    http.delete(files(f"{area}/d"), recursive="true")
    http.store(f"{area}/new", b"new")
    before, below = head_version(http), contents(http, area)
    response = http.post(family.restore, {"name": name})
    assert response.status == 200, response.body
    answer = response.json()
    assert (answer["restored"], answer["name"], answer["version"]) == (True, name, old["root_hash"])
    assert head_version(http) == old["root_hash"]
    assert contents(http, area) == {
        f"{area}/a": b"a",
        f"{area}/d/b": b"d/b",
        f"{area}/d/c": b"d/c",
    }
    assert http.read(f"{area}/link") == b"a"
    safety_snapshot(http, answer, before)
    assert contents(http, area, snapshot=answer["auto_snapshot"]) == below
    undo = http.post(family.restore, {"name": answer["auto_snapshot"]})
    assert undo.status == 200
    assert head_version(http) == before


def test_restoring_what_head_is_changes_nothing(http: Client, area: str, family: Family) -> None:
    http.store(f"{area}/a", b"a")
    make_snapshot(http, name := fresh())
    before, names = head_version(http), snapshot_names(http)
    response = http.post(family.restore, {"name": name})
    assert response.status == 200
    assert response.json()["restored"] is True
    assert response.json().get("auto_snapshot") is None
    assert (head_version(http), snapshot_names(http)) == (before, names)


def test_restoring_moves_no_fork_and_no_snapshot(http: Client, area: str) -> None:
    http.store(f"{area}/a", b"a")
    make_snapshot(http, name := fresh())
    http.store(f"{area}/a", b"b")
    make_fork(http, fork := fresh())
    http.put_file(f"{area}/a", b"c", fork=fork)
    others = {item["name"]: item["root_hash"] for item in list_snapshots(http)}
    assert http.post(PLURAL.restore, {"name": name}).status == 200
    assert http.read(f"{area}/a", fork=fork) == b"c"
    assert others.items() <= {item["name"]: item["root_hash"] for item in list_snapshots(http)}.items()


def test_restoring_what_is_unknown_is_404_and_makes_nothing(http: Client, area: str, family: Family) -> None:
    http.store(f"{area}/a", b"a")
    before, names = head_version(http), snapshot_names(http)
    assert_error(http.post(family.restore, {"name": fresh("no-such")}), 404, "NOT_FOUND")
    for body in ({}, {"name": 1}, {"name": None}, [], None):
        assert_error(http.post(family.restore, body), 400, "INVALID_INPUT")
    assert (head_version(http), snapshot_names(http)) == (before, names)


def test_every_restore_has_a_safety_snapshot_of_its_own(http: Client, area: str) -> None:
    names = []
    for number in range(2):
        http.store(f"{area}/a", b"%d" % number)
        names.append(make_snapshot(http, fresh())["name"])
    made = [
        http.post(PLURAL.restore, {"name": names[number % 2]}).json()["auto_snapshot"] for number in range(6)
    ]
    assert len(set(made)) == 6
    assert None not in made
    assert set(made) <= set(snapshot_names(http))


@pytest.mark.parametrize("by", ["snapshot", "version"])
def test_one_file_is_restored(http: Client, area: str, family: Family, by: str) -> None:
    path = f"{area}/f.txt"
    http.store(path, b"old content", {"Content-Type": "text/x-old", "X-Svc-Updated-At": "1234567890123"})
    http.store(f"{area}/other", b"one")
    snapshot = make_snapshot(http, fresh())
    source = {"snapshot": snapshot["name"]} if by == "snapshot" else {"version": snapshot["root_hash"]}
    http.store(path, b"new")
    http.store(f"{area}/other", b"two")
    before = head_version(http)
    response = http.post(family.restore_path(path), source)
    assert response.status == 200, response.body
    answer = response.json()
    assert (answer["restored"], answer["path"], answer["size"]) == (True, path, 11)
    assert answer["from_snapshot"] == (snapshot["name"] if by == "snapshot" else None)
    assert answer["version"] == head_version(http)
    safety_snapshot(http, answer, before)
    read = http.get(files(path))
    assert (read.body, read["Content-Type"]) == (b"old content", "text/x-old")
    assert read["X-Svc-Updated-At"] == "1234567890123"
    assert http.read(f"{area}/other") == b"two"


def test_a_snapshot_wins_over_a_version(http: Client, area: str, family: Family) -> None:
    path = f"{area}/f"
    version = http.store(path, b"version")["version"]
    http.store(path, b"snapshot")
    make_snapshot(http, name := fresh())
    http.store(path, b"head")
    body = {"version": version, "snapshot": name}
    assert http.post(family.restore_path(path), body).status == 200
    assert http.read(path) == b"snapshot"
    assert_error(http.post(family.restore_path(path), {**body, "snapshot": fresh("no")}), 404, "NOT_FOUND")


def test_a_deleted_file_comes_back_with_its_parents(http: Client, area: str, family: Family) -> None:
    path = f"{area}/d/e/f"
    http.store(path, b"gone")
    make_snapshot(http, name := fresh())
    http.delete(files(f"{area}/d"), recursive="true")
    assert http.post(family.restore_path(path), {"snapshot": name}).status == 200
    assert http.read(path) == b"gone"


def test_a_directory_is_restored_as_it_was(http: Client, area: str, family: Family) -> None:
    for name in ("d/a", "d/e/b", "outside"):
        http.store(f"{area}/{name}", b"old " + name.encode())
    make_snapshot(http, name := fresh())
    http.store(f"{area}/d/a", b"changed")
    http.delete(files(f"{area}/d/e/b"))
    http.store(f"{area}/d/new", b"new")
    http.store(f"{area}/outside", b"stays new")
    before = head_version(http)
    response = http.post(family.restore_path(f"{area}/d"), {"snapshot": name})
    assert response.status == 200, response.body
    assert contents(http, area) == {
        f"{area}/d/a": b"old d/a",
        f"{area}/d/e/b": b"old d/e/b",
        f"{area}/outside": b"stays new",
    }
    safety_snapshot(http, response.json(), before)


def test_a_link_is_restored_as_a_link(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"x")
    http.send_json("PUT", links(f"{area}/link"), {"target": f"{area}/f"})
    make_snapshot(http, name := fresh())
    http.delete(links(f"{area}/link"))
    http.store(f"{area}/link", b"a file now")
    assert http.post(PLURAL.restore_path(f"{area}/link"), {"snapshot": name}).status == 200
    assert http.get(links(f"{area}/link")).json()["target"] == f"{area}/f"
    assert http.read(f"{area}/f") == b"x"


def test_a_large_file_is_restored_without_copying_it(http: Client, version_server: Server, area: str) -> None:
    import os

    content = os.urandom(8 << 20)
    http.store(f"{area}/big", content)
    make_snapshot(http, name := fresh())
    http.store(f"{area}/big", b"small")
    before = version_server.database.stat().st_size
    assert http.post(PLURAL.restore_path(f"{area}/big"), {"snapshot": name}).json()["size"] == len(content)
    assert version_server.database.stat().st_size - before < 100_000
    assert blake3(http.read(f"{area}/big")).digest() == blake3(content).digest()


def test_a_file_in_the_way_is_no_500(http: Client, area: str) -> None:
    http.store(f"{area}/d/f", b"x")
    make_snapshot(http, name := fresh())
    http.delete(files(f"{area}/d"), recursive="true")
    http.store(f"{area}/d", b"a file where the directory was")
    response = http.post(PLURAL.restore_path(f"{area}/d/f"), {"snapshot": name})
    assert_error(response, 409, "CONFLICT")
    assert http.read(f"{area}/d") == b"a file where the directory was"
    assert http.post(PLURAL.restore_path(f"{area}/d"), {"snapshot": name}).status in (200, 409)


def test_the_specified_failures(http: Client, area: str, family: Family) -> None:
    path = f"{area}/f"
    http.store(f"{area}/before", b"x")
    make_snapshot(http, name := fresh())
    http.store(path, b"later")
    before, names = head_version(http), snapshot_names(http)
    unknown = blake3(b"never").hexdigest()
    target = family.restore_path(path)
    for body, status in (
        ({}, 400),
        ({"snapshot": None, "version": None}, 400),
        ({"version": "xyz"}, 400),
        ({"version": unknown[:-1]}, 400),
        ({"snapshot": 1}, 400),
        ({"version": ["x"]}, 400),
        ([], 400),
        ({"snapshot": fresh("no")}, 404),
        ({"version": unknown}, 404),
        ({"snapshot": name}, 404),
    ):
        assert_error(http.post(target, body), status)
    assert_error(http.request("POST", target, b""), 400)
    assert (head_version(http), snapshot_names(http)) == (before, names)
    assert http.read(path) == b"later"


def test_restoring_a_file_loses_nothing_that_others_write(
    version_server: Server, http: Client, area: str
) -> None:
    http.store(f"{area}/f", b"old")
    make_snapshot(http, name := fresh())
    stop = threading.Event()

    def write(number: int) -> dict[str, bytes]:
        written = {}
        with Client(version_server.url, timeout=60) as own:
            while not stop.is_set():
                path = f"{area}/w{number}/{len(written)}"
                own.store(path, written.setdefault(path, b"%d %d" % (number, len(written))))
        return written

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(write, number) for number in range(4)]
        for number in range(8):
            http.store(f"{area}/f", b"new %d" % number)
            response = http.post(PLURAL.restore_path(f"{area}/f"), {"snapshot": name})
            assert response.status == 200, response.body
            assert http.read(f"{area}/f") == b"old"
            safe = response.json()["auto_snapshot"]
            assert http.read(f"{area}/f", snapshot=safe) == b"new %d" % number
        stop.set()
        written = {path: content for one in running for path, content in one.result().items()}
    assert set(tree(http, area)) == {f"{area}/f", *written}
    for path, content in written.items():
        assert http.read(path) == content


def test_what_a_file_restore_replaces_is_always_in_its_safety_snapshot(
    version_server: Server, http: Client, area: str
) -> None:
    """While somebody else keeps writing the very file, nothing acknowledged vanishes without a version."""
    path = f"{area}/f"
    http.store(path, b"old")
    make_snapshot(http, name := fresh())
    stop = threading.Event()

    def write() -> None:
        with Client(version_server.url, timeout=60) as own:
            number = 0
            while not stop.is_set():
                own.store(path, b"write %d" % number)
                number += 1

    thread = threading.Thread(target=write)
    thread.start()
    statuses = [http.post(PLURAL.restore_path(path), {"snapshot": name}).status for _ in range(10)]
    stop.set()
    thread.join()
    assert set(statuses) <= {200, 409}
    entries = http.get(PLURAL.history(path), commits="true", limit=1000).json()["history"]
    snapshots = {item["root_hash"] for item in list_snapshots(http)}
    old = blake3(b"old").hexdigest()
    for newer, older in itertools.pairwise(entries):
        if newer["content_hash"] == old and older["content_hash"] != old:
            kept = {http.get(files(path), version=root)["X-Svc-Content-Hash"] for root in snapshots
                    if http.head(files(path), version=root).status == 200}  # fmt: skip
            assert older["content_hash"] in kept
