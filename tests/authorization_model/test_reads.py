"""Every route that reads answers what the model says, for any caller, at HEAD, in the past and on a fork."""

from __future__ import annotations

import io
import json
import random
import zipfile
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from authorization_model.callers import LETTERS, random_caller
from authorization_model.rules import Caller, Path, may
from authorization_model.scale import scaled
from authorization_model.service import FORK, SNAPSHOT, Service, serving
from authorization_model.trees import DIRECTORIES, FILES, GONE, LINKS, State, View, random_states, text_of

CALLERS_OF_ONE = 2
THROUGH_LINKS: list[Path] = [(*link, name) for link in LINKS[:4] for name in ("x.txt", "a", "l")]
ASKED = [*DIRECTORIES, *FILES, *LINKS, GONE, *THROUGH_LINKS]
MOST_EMPTY_PAGES = 20
KINDS = {"f": 2, "d": 3, "l": 8}


@pytest.mark.timeout(0)
@settings(max_examples=scaled(4), phases=(Phase.generate,))  # A smaller seed is no simpler case.
@given(seed=st.integers(0, 2**32))
def test_reads_are_those_of_the_model(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = random.Random(seed)
    past, head, fork = random_states(rng)
    with serving(tmp_path_factory.mktemp("model") / "t.svcdb", past, head, fork) as service:
        for _ in range(CALLERS_OF_ONE):
            caller = random_caller(rng)
            service.become(caller)
            for state, query in (
                (View(caller, head), {}),
                (View(caller, past, head), {"snapshot": SNAPSHOT}),
                (View(caller, past, head), {"version": service.snapshot_root}),
                (View(caller, fork), {"fork": FORK}),
            ):
                check_paths(service, state, query)
                check_fetch(service, state, query)
                check_zip(service, state, rng.choice(DIRECTORIES), query)
                for path in rng.sample(DIRECTORIES, 3):
                    check_query(service, state, path, query)
            check_blobs(service, View(caller, head), past)
            check_deleted(service, View(caller, head), past)
            check_history(service, View(caller, past, head), head)
            check_events(service, caller)


def check_events(service: Service, caller: Caller) -> None:
    """Of all entries those are told that the caller may read or list, and maybe what leads there."""
    url = "/system/events?follow=false&last_event_id=0&events=entries_created,entries_deleted"

    def told(answer: Any) -> list[tuple[str, str, list[str]]]:
        events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
        return [
            (event["event_id"], event["event_type"], [entry["path"] for entry in event["payload"]["entries"]])
            for event in events
        ]

    def shows(text: str, *, on_the_way: bool = False) -> bool:
        path = tuple(name for name in text.split("/") if name)
        return any(may(caller, letter, path, on_the_way) for letter in "rl")

    everything = told(service.as_root("GET", url))
    assert everything
    expected = [
        (event_id, name, [path for path in paths if shows(path)]) for event_id, name, paths in everything
    ]
    found = told(service("GET", url))
    assert all(paths and all(shows(path, on_the_way=True) for path in paths) for _, _, paths in found), caller
    kept = [(event_id, name, [path for path in paths if shows(path)]) for event_id, name, paths in found]
    assert [event for event in kept if event[2]] == [event for event in expected if event[2]], caller


def denial(caller: Caller) -> int:
    return 404 if caller.rules else 403


def expected_status(view: View, path: Path, kind: str) -> int:
    if kind == "denied":
        return denial(view.caller)
    return 404 if kind == "missing" else 200


def check_paths(service: Service, view: View, query: dict[str, str]) -> None:
    for path in ASKED:
        where = (view.caller, path, query)
        kind, place = view.find(path)
        answer = service("GET", f"/files{text_of(path)}", **query)
        assert answer.status_code == expected_status(view, path, kind), where
        head = service("HEAD", f"/files{text_of(path)}", **query)
        assert (head.status_code, head.content) == (answer.status_code, b""), where
        if kind == "f":
            assert answer.text == view.state[place].content, where
        elif kind == "d":
            check_listing(service, view, path, place, query)
        elif answer.status_code == 404 and view.caller.rules:
            assert set(answer.json) == {"error", "code", "path"}, where
            assert answer.json["error"] == "There is nothing at this path.", where
        check_link(service, view, path, query)


def check_listing(service: Service, view: View, path: Path, place: Path, query: dict[str, str]) -> None:
    def items(**more: str) -> dict[str, Any]:
        page = service("GET", f"/files{text_of(path)}", **query, **more).json
        assert page["has_more"] is False
        assert page["total"] == len(page["items"])
        return {item["path"]: item for item in page["items"]}

    where = (view.caller, path, query)
    shown = [at for at in view.children(place) if view.shows(at)]
    found = items()
    assert list(found) == [text_of(at) for at in shown], where
    for at in shown:
        item, node = found[text_of(at)], view.state[at]
        assert item["entry_type"] == KINDS[node.kind]
        flags = "".join(letter if view.may(letter, at) else "-" for letter in LETTERS)
        unlimited = view.caller.is_root and not view.caller.rules
        assert item.get("effective_permissions") == (None if unlimited else flags), where
        if node.kind == "d" and item["hash"] is not None:
            check_totals(view, at, item)
        if unlimited:
            assert item["hash"] is not None
    if path == place:
        check_pages(service, path, query, found)
    files = [at for at in view.below(place) if view.state[at].kind == "f" and view.shows(at)]
    assert list(items(depth="-1")) == [text_of(at) for at in files], where
    texts = [text_of(at) for at in files if at[-1].endswith(".txt")]
    assert list(items(depth="-1", glob="*.txt")) == texts, where


def check_pages(service: Service, path: Path, query: dict[str, str], whole: dict[str, Any]) -> None:
    """Pages hold the listing, row by row; and a cursor that somebody else got opens nothing."""
    url, found, after = f"/files{text_of(path)}", [], None
    for _ in range(len(whole) + MOST_EMPTY_PAGES):
        more = {} if after is None else {"after": after}
        page = service("GET", url, **query, limit="2", **more).json
        assert len(page["items"]) <= 2
        found += page["items"]
        after = page["next_cursor"]
        assert page["has_more"] is (after is not None)
        if after is None:
            break
    assert after is None, (path, query)
    assert found == list(whole.values()), (path, query)
    options = "&".join(f"{name}={value}" for name, value in {**query, "limit": "1"}.items())
    theirs = service.as_root("GET", f"{url}?{options}").json["next_cursor"]
    if theirs is not None:
        page = service("GET", url, **query, after=theirs).json
        assert all(whole[item["path"]] == item for item in page["items"]), (path, query)


def check_totals(view: View, path: Path, item: dict[str, Any]) -> None:
    """What is made from everything below is told to those who see everything below."""
    below = view.below(path)
    assert all(view.shows(at) for at in below), (view.caller, path)
    files = [view.state[at] for at in below if view.state[at].kind == "f"]
    assert item["file_count"] == len(files)
    assert item["total_size"] >= sum(len(file.content) for file in files)


def check_link(service: Service, view: View, path: Path, query: dict[str, str]) -> None:
    kind, place = view.find(path, "r", final=False)
    # Read by its own route, a directory on the way is no directory but something without a link.
    if not may(view.caller, "r", path):
        kind = "denied"
    answer = service("GET", f"/links{text_of(path)}", **query)
    expected = expected_status(view, path, kind) if kind in ("denied", "missing", "l") else 404
    assert answer.status_code == expected, (view.caller, path, query)
    if answer.status_code == 200:
        assert answer.json["target"] == view.state[place].content
        end, node = view.follow(place)
        resolved = text_of(end) if node is not None and view.shows(end) else None
        assert answer.json["resolved"] == resolved, (view.caller, path, query)


def check_fetch(service: Service, view: View, query: dict[str, str]) -> None:
    answer = service("POST", "/files/fetch", {"paths": [text_of(path) for path in ASKED]}, **query)
    assert answer.status_code == 200
    for path, item in zip(ASKED, answer.json["items"], strict=True):
        kind, place = view.find(path, "r")
        content = view.state[place].content if kind == "f" else None
        assert item.get("content") == content, (view.caller, path, query)
        if kind != "f":
            assert set(item) == {"path", "error", "code"}, (view.caller, path, query)


def check_zip(service: Service, view: View, path: Path, query: dict[str, str]) -> None:
    kind, place = view.find(path)
    answer = service("POST", "/files/download", {"paths": [text_of(path)]}, **query)
    assert answer.status_code == expected_status(view, path, kind), (view.caller, path, query)
    if answer.status_code != 200:
        return
    expected: dict[str, str] = {}
    for at in view.below(place):
        node = view.state[at]
        if node.kind == "l":
            found, end = view.find(at, "r")
            content = view.state[end].content if found == "f" else None
        else:
            content = node.content if node.kind == "f" and view.may("r", at) and view.counts(at) else None
        if content is not None:
            expected["/".join((*path[-1:], *at[len(place) :]))] = content
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    packed = {name: archive.read(name).decode() for name in archive.namelist() if not name.endswith("/")}
    assert packed == expected, (view.caller, path, query)


def check_query(service: Service, view: View, path: Path, query: dict[str, str]) -> None:
    """A query finds, counts and sums the files that may be read, whether an index or a walk answers it."""
    where = {"field": "@size", "op": "gte", "value": 0}
    body: dict[str, Any] = {"path": text_of(path), "where": where, "limit": 1000, "include_total": True}
    files = [at for at in view.below(path) if view.state[at].kind == "f"]
    expected = [text_of(at) for at in files if view.may("r", at) and view.counts(at)]
    found = service("POST", "/files/query", {**body, **query})
    assert found.status_code == 200 or (found.status_code == 404 and not expected), (view.caller, path, query)
    if found.status_code == 200:
        assert [row["path"] for row in found.json["results"]] == expected, (view.caller, path, query)
        assert found.json["total_count"] == len(expected)
        summed = service(
            "POST", "/files/query", {**body, **query, "aggregate": {"count": True, "sum": ["@size"]}}
        )
        sizes = sum(len(view.state[at].content.encode()) for at in files if text_of(at) in expected)
        assert summed.json["count"] == len(expected), (view.caller, path, query)
        assert summed.json["sum"]["@size"] == sizes, (view.caller, path, query)


def check_blobs(service: Service, view: View, past: State) -> None:
    nodes = {**past, **view.state}.values()
    for content in sorted({node.content for node in nodes if node.kind == "f"}):
        readable = any(
            node.kind == "f" and node.content == content and view.may("r", at)
            for at, node in view.state.items()
        )
        answer = service("GET", f"/blobs/{blake3(content.encode()).hexdigest()}")
        assert answer.status_code == (200 if readable else 404), (view.caller, content)


def check_deleted(service: Service, view: View, past: State) -> None:
    gone = sorted(at for at, node in past.items() if at not in view.state and node.kind in "fl")
    for path in DIRECTORIES:
        where = (view.caller, path)
        answer = service("GET", "/files/deleted", path=text_of(path))
        if not may(view.caller, "d", path):
            assert answer.status_code == denial(view.caller), where
            continue
        shown = [text_of(at) for at in gone if at[: len(path)] == path and may(view.caller, "d", at)]
        assert [item["path"] for item in answer.json["items"]] == shown, where


def check_history(service: Service, view: View, head: State) -> None:
    """``view`` is of the snapshot, behind which one commit made HEAD."""
    caller, past = view.caller, view.state

    def knows(path: Path) -> bool:
        """Whether the caller may know what happened at a path."""
        node = head.get(path) or past.get(path)
        is_directory = node is not None and node.kind == "d"
        reads = may(caller, "r", path) or (is_directory and may(caller, "l", path, True))
        return reads and (path in head or may(caller, "d", path))

    changed = {
        at: "added" if at not in past else "deleted" if at not in head else "modified"
        for at in {**past, **head}
        if past.get(at) != head.get(at)
    }
    shown = {text_of(at): change for at, change in changed.items() if knows(at)}
    compared = service("GET", "/versions/compare", **{"from": SNAPSHOT}).json["changes"]
    kinds = {one["path"]: one["change_type"] for one in compared}
    kinds = {at: change for at, change in kinds.items() if change != "modified" or at in shown}
    assert kinds == shown, caller
    page = service("GET", "/versions/log").json["commits"]
    assert bool(page and page[0]["version"] != page[-1]["version"]) <= bool(changed)
    newest = [one for one in page if one["parent"] == service.snapshot_root]
    assert bool(newest) == bool(shown), caller
    for path in ASKED[len(DIRECTORIES) :]:
        check_history_of(service, caller, path, past, head, knows(path))


def check_history_of(
    service: Service, caller: Caller, path: Path, past: State, head: State, known: bool
) -> None:
    answer = service("GET", f"/versions/file-history{text_of(path)}")
    allowed = may(caller, "r", path) or may(caller, "l", path, True)
    assert answer.status_code == (200 if allowed else denial(caller)), (caller, path)
    if allowed:
        rows = [row["change_type"] for row in answer.json["history"]]
        # The rows are of snapshots, which a share key is not told of.
        told = path in past and known and (caller.is_root or caller.grants is not None)
        assert rows == (["added"] if told else []), (caller, path)
    blame = service("GET", f"/versions/blame{text_of(path)}")
    if not allowed:
        assert blame.status_code == denial(caller), (caller, path)
    else:
        assert blame.status_code == (200 if path in head and known else 404), (caller, path)
