"""Three-way merges: what both sides changed, and what both changed differently."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from blake3 import blake3

from svc_blackbox.client import Client, assert_error, files
from svc_blackbox.server import Server
from svc_blackbox.versions import (
    PLURAL,
    contents,
    fork_of,
    fresh,
    head_version,
    make_fork,
    make_snapshot,
    merge,
    tree,
)


def merged(http: Client, source: str, into: str = "HEAD", strategy: str = "fail", **members: Any) -> Any:
    """Merges and insists on success."""
    response = merge(http, source, into, strategy, **members)
    assert response.status == 200, response.body
    value = response.json()
    assert value["merged"] is True
    return value


@pytest.fixture
def fork(http: Client, area: str) -> str:
    """A fork of a state with the files a, b, c, d/x of the area."""
    for name in ("a", "b", "c", "d/x"):
        http.store(f"{area}/{name}", b"base " + name.encode())
    make_fork(http, name := fresh("fork"))
    return name


def test_a_fork_that_head_has_not_left_behind_is_taken_whole(http: Client, area: str, fork: str) -> None:
    http.put_file(f"{area}/a", b"fork", fork=fork)
    http.delete(files(f"{area}/b"), fork=fork)
    http.put_file(f"{area}/new", b"fork", fork=fork)
    base, root = head_version(http), head_version(http, fork=fork)
    value = merged(http, fork)
    assert (value["fast_forward"], value["version"], value["base"]) == (True, root, base)
    assert value["changes"] == {"added": 1, "modified": 1, "deleted": 1}
    assert head_version(http) == root
    assert fork_of(http, fork)["base"] == root


def test_what_each_side_changed_comes_together(http: Client, area: str, fork: str) -> None:
    http.put_file(f"{area}/a", b"fork a", fork=fork)
    http.delete(files(f"{area}/d/x"), fork=fork)
    http.put_file(f"{area}/fork/new", b"fork new", fork=fork)
    http.store(f"{area}/b", b"head b")
    http.delete(files(f"{area}/c"))
    http.store(f"{area}/head/new", b"head new")
    head, fork_root = head_version(http), head_version(http, fork=fork)
    value = merged(http, fork, message="together")
    assert value["fast_forward"] is False
    assert value["changes"] == {"added": 1, "modified": 1, "deleted": 1}
    assert contents(http, area) == {
        f"{area}/a": b"fork a",
        f"{area}/b": b"head b",
        f"{area}/fork/new": b"fork new",
        f"{area}/head/new": b"head new",
    }
    assert value["version"] == head_version(http) not in (head, fork_root)
    assert head_version(http, fork=fork) == fork_root
    assert http.get("/versions/log", limit=1).json()["commits"][0]["message"] == "together"


def conflict(http: Client, area: str, fork: str) -> None:
    """Makes conflicts of all kinds at a, b, c and e; d/x is changed on one side only."""
    for path, at_head, on_fork in (
        ("a", b"head a", b"fork a"),
        ("b", None, b"fork b"),
        ("c", b"head c", None),
        ("e", b"head e", b"fork e"),
        ("d/x", None, b"fork x"),
    ):
        for content, place in ((at_head, {}), (on_fork, {"fork": fork})):
            if content is not None:
                assert http.put_file(f"{area}/{path}", content, **place).status in (200, 201)
            elif path != "d/x":
                assert http.delete(files(f"{area}/{path}"), **place).status == 200


def side(content: bytes | None) -> dict[str, object] | None:
    """What a conflict says of a side."""
    return (
        None
        if content is None
        else {"hash": blake3(content).hexdigest(), "size": len(content), "entry_type": 2}
    )


def test_conflicts_are_409_with_both_sides(http: Client, area: str, fork: str) -> None:
    conflict(http, area, fork)
    head, root, base = head_version(http), head_version(http, fork=fork), fork_of(http, fork)["base"]
    error = assert_error(merge(http, fork), 409, "CONFLICT")
    assert error["conflict_count"] == 4
    found = {item["path"]: item for item in error["conflicts"]}
    expected = {
        "a": ("modify_modify", b"base a", b"head a", b"fork a"),
        "b": ("modify_delete", b"base b", None, b"fork b"),
        "c": ("modify_delete", b"base c", b"head c", None),
        "e": ("add_add", None, b"head e", b"fork e"),
    }
    assert set(found) == {f"{area}/{name}" for name in expected}
    for name, (kind, *contents_of_sides) in expected.items():
        item = found[f"{area}/{name}"]
        assert item["kind"] == kind
        for which, content in zip(("base", "ours", "theirs"), contents_of_sides, strict=True):
            told = item[which]
            assert (told is None) == (content is None), (name, which)
            if told is not None:
                assert told.items() >= (side(content) or {}).items()
                assert isinstance(told["updated_at"], int)
    assert (head_version(http), head_version(http, fork=fork)) == (head, root)
    assert fork_of(http, fork)["base"] == base


@pytest.mark.parametrize("strategy", ["ours", "theirs"])
def test_a_strategy_decides_conflicts_and_nothing_else(
    http: Client, area: str, fork: str, strategy: str
) -> None:
    conflict(http, area, fork)
    merged(http, fork, "HEAD", strategy)
    expected = {
        "ours": {"a": b"head a", "c": b"head c", "e": b"head e"},
        "theirs": {"a": b"fork a", "b": b"fork b", "e": b"fork e"},
    }[strategy]
    expected["d/x"] = b"fork x"
    assert contents(http, area) == {f"{area}/{name}": content for name, content in expected.items()}


def test_a_file_against_a_directory_is_a_conflict(http: Client, area: str, fork: str) -> None:
    http.store(f"{area}/e/inside", b"head")
    http.put_file(f"{area}/e", b"fork", fork=fork)
    error = assert_error(merge(http, fork), 409, "CONFLICT")
    assert [(item["path"], item["kind"]) for item in error["conflicts"]] == [(f"{area}/e", "file_directory")]
    merged(http, fork, "HEAD", "theirs")
    assert http.read(f"{area}/e") == b"fork"


def test_the_same_change_on_both_sides_is_no_conflict(http: Client, area: str, fork: str) -> None:
    same = {"X-Svc-Created-At": "5000", "X-Svc-Updated-At": "5000"}
    for place in ({}, {"fork": fork}):
        http.put_file(f"{area}/a", b"same", same, **place)
        http.delete(files(f"{area}/b"), **place)
    http.put_file(f"{area}/more", b"fork", fork=fork)
    merged(http, fork)
    assert contents(http, area) == {
        f"{area}/a": b"same",
        f"{area}/c": b"base c",
        f"{area}/d/x": b"base d/x",
        f"{area}/more": b"fork",
    }


def test_head_is_merged_into_a_fork(http: Client, area: str, fork: str) -> None:
    http.put_file(f"{area}/a", b"fork", fork=fork)
    http.store(f"{area}/b", b"head")
    head = head_version(http)
    value = merged(http, "HEAD", fork)
    assert value["version"] == head_version(http, fork=fork)
    assert head_version(http) == head
    assert (http.read(f"{area}/a", fork=fork), http.read(f"{area}/b", fork=fork)) == (b"fork", b"head")
    assert fork_of(http, fork)["base"] == head
    assert http.post(PLURAL.fork(fork, "/promote"), {}).status == 200
    assert (http.read(f"{area}/a"), http.read(f"{area}/b")) == (b"fork", b"head")


def test_a_second_merge_takes_only_what_is_new(http: Client, area: str, fork: str) -> None:
    http.put_file(f"{area}/a", b"first", fork=fork)
    http.store(f"{area}/b", b"head")
    merged(http, fork)
    http.store(f"{area}/a", b"head changed it after the merge")
    http.put_file(f"{area}/c", b"second", fork=fork)
    merged(http, fork)
    assert http.read(f"{area}/a") == b"head changed it after the merge"
    assert (http.read(f"{area}/b"), http.read(f"{area}/c")) == (b"head", b"second")


def test_a_conflict_that_was_decided_does_not_come_back(http: Client, area: str, fork: str) -> None:
    http.store(f"{area}/a", b"head")
    http.put_file(f"{area}/a", b"fork", fork=fork)
    merged(http, fork, "HEAD", "ours")
    http.put_file(f"{area}/b", b"fork", fork=fork)
    merged(http, fork)
    assert (http.read(f"{area}/a"), http.read(f"{area}/b")) == (b"head", b"fork")


def test_merging_what_is_merged_already_moves_nothing(http: Client, area: str, fork: str) -> None:
    http.store(f"{area}/b", b"head")
    before = head_version(http)
    value = merged(http, fork)
    assert value["version"] == before == head_version(http)
    assert value["changes"] == {"added": 0, "modified": 0, "deleted": 0}


def test_a_fork_is_merged_into_a_fork(http: Client, area: str, fork: str) -> None:
    make_fork(http, other := fresh("other"))
    http.put_file(f"{area}/a", b"fork", fork=fork)
    http.put_file(f"{area}/b", b"other", fork=other)
    head = head_version(http)
    merged(http, fork, other)
    assert (http.read(f"{area}/a", fork=other), http.read(f"{area}/b", fork=other)) == (b"fork", b"other")
    assert http.read(f"{area}/b", fork=fork) == b"base b"
    assert head_version(http) == head


def test_a_snapshot_is_merged_into_head(http: Client, area: str, fork: str) -> None:
    http.put_file(f"{area}/a", b"fork", fork=fork)
    http.post(PLURAL.fork(fork, "/promote"), {})
    make_snapshot(http, name := fresh())
    http.store(f"{area}/b", b"head")
    merged(http, name)
    assert (http.read(f"{area}/a"), http.read(f"{area}/b")) == (b"fork", b"head")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"from": "no-such", "into": "HEAD", "strategy": "fail"}, 404),
        ({"from": "FORK", "into": "no-such", "strategy": "fail"}, 404),
        ({"from": "FORK", "into": "HEAD", "strategy": "mine"}, 400),
        ({"from": "FORK", "into": "HEAD", "strategy": 1}, 400),
        ({"into": "HEAD", "strategy": "fail"}, 400),
        ({"from": "", "into": "HEAD", "strategy": "fail"}, 400),
        ({"from": 1, "into": "HEAD"}, 400),
        ([], 400),
    ],
)
def test_a_bad_request_changes_nothing(http: Client, area: str, fork: str, body: Any, status: int) -> None:
    http.put_file(f"{area}/a", b"fork", fork=fork)
    before = head_version(http)
    if isinstance(body, dict):
        body = {key: fork if value == "FORK" else value for key, value in body.items()}
    response = http.post("/versions/merge", body)
    if body == {"from": "", "into": "HEAD", "strategy": "fail"} and response.status == 404:
        status = 404
    assert_error(response, status)
    assert head_version(http) == before


def test_nothing_is_merged_into_a_snapshot(http: Client, area: str, fork: str) -> None:
    make_snapshot(http, name := fresh())
    http.put_file(f"{area}/a", b"fork", fork=fork)
    response = merge(http, fork, name)
    assert response.status in (400, 404)
    assert http.read(f"{area}/a", snapshot=name) == b"base a"


def test_merges_under_load_lose_nothing(version_server: Server, http: Client, area: str) -> None:
    http.store(f"{area}/base", b"base")
    forks = [make_fork(http, fresh("load"))["name"] for _ in range(4)]

    def work(number: int) -> None:
        with Client(version_server.url, timeout=60) as own:
            for index in range(8):
                assert own.put_file(f"{area}/fork{number}/{index}", b"x", fork=forks[number]).status == 201
                own.store(f"{area}/head{number}/{index}", b"x")
                if index % 2:
                    assert merge(own, forks[number]).status == 200

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    expected = {
        f"{area}/{place}{number}/{index}"
        for place in ("fork", "head")
        for number in range(4)
        for index in range(8)
    }
    assert set(tree(http, area)) == expected | {f"{area}/base"}
