"""Merge brings together what two sides changed since they were one, or says where they disagree."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.errors import Conflict, InvalidInput, NotFound
from svc.plugin import Database
from svc.tree import diff
from svc_versions.ancestry import common_ancestor
from svc_versions.forks import abandon_fork, create_fork, find_fork, promote_fork
from svc_versions.merging import MergeLimits, merge_versions
from svc_versions.models import Resolution
from svc_versions.restoring import restore_snapshot
from svc_versions.snapshots import create_snapshot
from svc_versions.tree_edits import Counts, edits_between

from .conftest import contents, write  # noqa: TID252


def conflicts_of(database: Database, source: str, target: str = "HEAD") -> list[dict[str, Any]]:
    head = database.head().root
    with pytest.raises(Conflict) as refused:
        merge_versions(database, source, target)
    assert database.head().root == head
    assert refused.value.details["conflict_count"] == len(refused.value.details["conflicts"])
    listed: list[dict[str, Any]] = refused.value.details["conflicts"]
    return listed


@pytest.fixture
def forked(database: Database) -> Database:
    """HEAD and a fork ``f`` that begin alike."""
    write(database, {"/same": "0", "/ours": "0", "/theirs": "0", "/both": "0", "/d/1": "0", "/e/1": "0"})
    create_fork(database, "f")
    return database


def test_changes_of_both_sides_come_together(forked: Database) -> None:
    write(forked, {"/ours": "1", "/d/new": "1", "/e": None})
    write(forked, {"/theirs": "2", "/d/1": None, "/new/deep": "2"}, "f")
    done = merge_versions(forked, "f", actor="ann")
    assert contents(forked) == {
        "/same": "0", "/both": "0", "/ours": "1", "/theirs": "2", "/d/new": "1", "/new/deep": "2",
    }  # fmt: skip
    assert (done.counts, done.fast_forward, done.committed) == (Counts(1, 1, 1), False, True)
    assert done.version == forked.head().root
    record = forked.commit(forked.head().sequence).transactions[0]
    assert (record.actor, record.message) == ("ann", "merge fork f into HEAD")
    assert contents(forked, "f")["/ours"] == "0"


def test_a_target_that_has_not_moved_takes_the_sources_state_itself(forked: Database) -> None:
    write(forked, {"/theirs": "2", "/both": None}, "f")
    done = merge_versions(forked, "f")
    assert done.fast_forward
    assert forked.head().root == find_fork(forked, "f").root == done.version
    assert done.counts == Counts(0, 1, 1)


def test_merging_again_does_nothing(forked: Database) -> None:
    write(forked, {"/ours": "1"})
    write(forked, {"/theirs": "2"}, "f")
    merge_versions(forked, "f")
    sequence = forked.head().sequence
    again = merge_versions(forked, "f")
    assert (again.committed, again.counts, again.fast_forward) == (False, Counts(), False)
    assert forked.head().sequence == sequence


def test_after_a_merge_only_what_is_new_is_merged(forked: Database) -> None:
    write(forked, {"/both": "2"}, "f")
    merge_versions(forked, "f")
    write(forked, {"/both": "3"})
    write(forked, {"/new": "2"}, "f")
    merge_versions(forked, "f")
    assert contents(forked)["/both"] == "3"
    assert contents(forked)["/new"] == "2"
    merge_versions(forked, "HEAD", "f")
    assert contents(forked, "f") == contents(forked)
    assert find_fork(forked, "f").base == forked.head().root
    write(forked, {"/both": "4"}, "f")
    assert promote_fork(forked, "f").version == forked.head().root


def test_who_writes_the_same_or_only_touches_a_file_makes_no_conflict(forked: Database) -> None:
    write(forked, {"/both": "same", "/ours": "0", "/theirs": "1", "/d/1": "0"})
    write(forked, {"/both": "same", "/ours": "2", "/theirs": "0", "/d/1": None}, "f")
    later = forked.at(find_fork(forked, "f").root).get(("both",))
    merge_versions(forked, "f")
    found = contents(forked)
    assert (found["/both"], found["/ours"], found["/theirs"]) == ("same", "2", "1")
    assert forked.at().get(("both",)) == later


def test_every_conflict_is_listed_with_both_sides(forked: Database) -> None:
    write(forked, {"/both": "ours", "/d/1": None, "/e/1": "ours", "/added": "ours", "/kind": "file"})
    write(forked, {"/both": "theirs!", "/d/1": "theirs", "/e/1": None, "/added": "th", "/kind/x": "y"}, "f")
    found = {one["path"]: one for one in conflicts_of(forked, "f")}
    assert {path: one["kind"] for path, one in found.items()} == {
        "/added": "add_add",
        "/both": "modify_modify",
        "/d/1": "modify_delete",
        "/e/1": "modify_delete",
        "/kind": "file_directory",
    }
    both = found["/both"]
    assert (both["base"]["size"], both["ours"]["size"], both["theirs"]["size"]) == (1, 4, 7)
    assert both["theirs"]["hash"] == forked.at(find_fork(forked, "f").root).get(("both",)).hash.hex()  # type: ignore[union-attr]
    assert set(both["ours"]) == {"hash", "size", "updated_at", "entry_type", "content_type"}
    assert found["/d/1"]["ours"] is None
    assert found["/added"]["base"] is None
    assert found["/kind"]["theirs"]["entry_type"] == 3


@pytest.mark.parametrize(("strategy", "both", "deleted"), [("ours", "ours", None), ("theirs", "theirs", "1")])
def test_a_strategy_decides_conflicts_and_nothing_else(
    forked: Database, strategy: Any, both: str, deleted: str | None
) -> None:
    write(forked, {"/both": "ours", "/d/1": None, "/ours": "1"})
    write(forked, {"/both": "theirs", "/d/1": "1", "/theirs": "2"}, "f")
    done = merge_versions(forked, "f", "HEAD", strategy)
    assert done.conflicts == 2
    found = contents(forked)
    assert (found["/both"], found.get("/d/1"), found["/ours"], found["/theirs"]) == (both, deleted, "1", "2")


def test_the_list_of_conflicts_has_an_end_and_their_number_does_not(forked: Database) -> None:
    write(forked, {f"/c/{number}": "ours" for number in range(30)})
    write(forked, {f"/c/{number}": "theirs" for number in range(30)}, "f")
    with pytest.raises(Conflict) as refused:
        merge_versions(forked, "f", limits=MergeLimits(conflicts_listed=10))
    assert refused.value.details["conflict_count"] == 30
    assert len(refused.value.details["conflicts"]) == 10


def test_a_dry_run_says_everything_and_does_nothing(forked: Database) -> None:
    write(forked, {"/theirs": "2", "/new": "2"}, "f")
    sequence = forked.head().sequence
    done = merge_versions(forked, "f", dry_run=True)
    assert (done.counts, done.committed, forked.head().sequence) == (Counts(1, 1, 0), False, sequence)


def test_head_goes_into_a_fork(forked: Database) -> None:
    write(forked, {"/ours": "1", "/both": "1"})
    write(forked, {"/theirs": "2"}, "f")
    head = forked.head().root
    done = merge_versions(forked, "HEAD", "f")
    assert forked.head().root == head
    assert done.version == find_fork(forked, "f").root
    assert contents(forked, "f") == {**contents(forked), "/theirs": "2"}
    write(forked, {"/both": "2"})
    merge_versions(forked, "HEAD", "forks/f")
    assert contents(forked, "f")["/both"] == "2"


def test_forks_merge_with_each_other_over_and_over(forked: Database) -> None:
    create_fork(forked, "g")
    write(forked, {"/both": "f1"}, "f")
    write(forked, {"/ours": "g1"}, "g")
    merge_versions(forked, "f", "g")
    assert contents(forked, "g")["/both"] == "f1"
    # What came from the other side and was changed since is no conflict with what it was.
    write(forked, {"/both": "g2"}, "g")
    write(forked, {"/theirs": "f2"}, "f")
    merge_versions(forked, "f", "g")
    assert contents(forked, "g")["/both"] == "g2"
    merge_versions(forked, "g", "f")
    assert contents(forked, "f") == contents(forked, "g")
    merge_versions(forked, "f")
    assert contents(forked) == contents(forked, "g")


def test_a_fork_of_the_same_name_is_another_fork(forked: Database) -> None:
    create_fork(forked, "g")
    write(forked, {"/both": "f1"}, "f")
    merge_versions(forked, "f", "g")
    abandon_fork(forked, "f")
    create_fork(forked, "f")
    write(forked, {"/both": "f2"}, "f")
    assert [one["path"] for one in conflicts_of(forked, "f", "g")] == ["/both"]


def test_a_fork_that_took_in_more_of_head_carries_it_along(forked: Database) -> None:
    write(forked, {"/both": "1"})
    create_fork(forked, "later")
    write(forked, {"/new": "later"}, "later")
    merge_versions(forked, "later", "f")
    write(forked, {"/both": "2"})
    # The fork holds HEAD's first change to /both now: the second one is no conflict with it.
    merge_versions(forked, "HEAD", "f")
    assert contents(forked, "f")["/both"] == "2"
    assert contents(forked, "f")["/new"] == "later"


def test_a_snapshot_that_head_came_of_brings_nothing(database: Database) -> None:
    write(database, {"/a": "1"})
    create_snapshot(database, "one")
    write(database, {"/a": "2"})
    done = merge_versions(database, "one")
    assert (done.committed, contents(database)) == (False, {"/a": "2"})


def test_a_snapshot_that_head_left_behind_is_merged_back(database: Database) -> None:
    write(database, {"/a": "1", "/b": "1"})
    create_snapshot(database, "one")
    write(database, {"/a": "2", "/c": "2"})
    create_snapshot(database, "two")
    restore_snapshot(database, "one")
    write(database, {"/b": "3"})
    done = merge_versions(database, "snapshots/two")
    assert contents(database) == {"/a": "2", "/b": "3", "/c": "2"}
    assert done.base == database.resolve_version(snapshot="one")


def test_a_snapshot_goes_into_a_fork(forked: Database) -> None:
    write(forked, {"/ours": "1"})
    create_snapshot(forked, "s")
    write(forked, {"/ours": "2"})
    write(forked, {"/theirs": "f"}, "f")
    merge_versions(forked, "s", "f")
    assert (contents(forked, "f")["/ours"], contents(forked, "f")["/theirs"]) == ("1", "f")
    merge_versions(forked, "HEAD", "f")
    assert contents(forked, "f")["/ours"] == "2"


def test_a_snapshot_of_a_fork_is_merged_from_where_the_fork_began(forked: Database) -> None:
    write(forked, {"/theirs": "2"}, "f")
    fork = find_fork(forked, "f")
    create_snapshot(forked, "of-f", root=fork.root, base_sequence=fork.base_sequence)
    write(forked, {"/ours": "1"})
    merge_versions(forked, "of-f")
    assert (contents(forked)["/ours"], contents(forked)["/theirs"]) == ("1", "2")


def test_a_promotion_goes_on_from_where_it_came_of(forked: Database) -> None:
    create_snapshot(forked, "start")
    create_fork(forked, "g")
    write(forked, {"/theirs": "f"}, "f")
    promote_fork(forked, "f")
    write(forked, {"/ours": "h"})
    write(forked, {"/both": "g"}, "g")
    assert merge_versions(forked, "start").committed is False
    merge_versions(forked, "g")
    assert (contents(forked)["/theirs"], contents(forked)["/ours"], contents(forked)["/both"]) == (
        "f", "h", "g",
    )  # fmt: skip


def test_without_a_known_base_whatever_differs_is_a_conflict(database: Database) -> None:
    write(database, {"/a": "1", "/b": "1"})
    with database.transaction() as transaction:
        transaction.set_ref("forks/foreign", database.head().root)
    write(database, {"/a": "2", "/c": "2"}, "foreign")
    assert [one["path"] for one in conflicts_of(database, "foreign")] == ["/a"]
    done = merge_versions(database, "foreign", "HEAD", "theirs")
    assert done.base is None
    assert contents(database) == {"/a": "2", "/b": "1", "/c": "2"}
    write(database, {"/a": "3"}, "foreign")
    merge_versions(database, "foreign")
    assert contents(database)["/a"] == "3"


@pytest.mark.parametrize(
    ("source", "target", "error"),
    [
        ("none", "HEAD", NotFound),
        ("f", "none", NotFound),
        ("f", "f", InvalidInput),
        ("HEAD", "HEAD", InvalidInput),
        ("f", "snap", InvalidInput),
        ("f", "snapshots/snap", InvalidInput),
        ("x" * 300, "HEAD", NotFound),
        ("", "HEAD", NotFound),
    ],
)
def test_what_cannot_be_merged_is_refused(
    forked: Database, source: str, target: str, error: type[Exception]
) -> None:
    create_snapshot(forked, "snap")
    with pytest.raises(error):
        merge_versions(forked, source, target)


def test_a_file_in_the_place_of_a_directory_and_the_reverse(forked: Database) -> None:
    write(forked, {"/d": None, "/same": None}, "f")
    write(forked, {"/d": "file", "/same/below": "x"}, "f")
    write(forked, {"/ours": "1"})
    merge_versions(forked, "f")
    assert contents(forked)["/d"] == "file"
    assert contents(forked)["/same/below"] == "x"


@pytest.mark.parametrize("target", ["HEAD", "g"])
def test_of_a_directory_that_one_side_deleted_stays_what_the_other_put_into_it(
    forked: Database, target: str
) -> None:
    """Neither side has that directory: it is made of what is left of it."""
    write(forked, {"/p/q/1": "0", "/p/q/2": "0", "/p/q/r/3": "0", "/p/x": "0"})
    create_fork(forked, "g")
    create_fork(forked, "s")
    fork = None if target == "HEAD" else target
    write(forked, {"/p/q": None}, fork)
    write(forked, {"/p/q/new": "2", "/p/q/r/deep/new": "2", "/p/q/2": None}, "s")
    done = merge_versions(forked, "s", target)
    held = {path: text for path, text in contents(forked, fork).items() if path.startswith("/p")}
    assert held == {"/p/q/new": "2", "/p/q/r/deep/new": "2", "/p/x": "0"}
    assert done.counts == Counts(2, 0, 0)
    assert merge_versions(forked, "s", target).committed is False


def test_a_file_where_one_side_changed_the_directory_gives_way_to_what_is_left_of_it(
    forked: Database,
) -> None:
    write(forked, {"/p/1": "0", "/p/2": "0"})
    create_fork(forked, "s")
    write(forked, {"/p": None})
    write(forked, {"/p": "a file"})
    write(forked, {"/p/1": "2"}, "s")
    assert conflicts_of(forked, "s")
    merge_versions(forked, "s", "HEAD", "theirs")
    held = {path: text for path, text in contents(forked).items() if path.startswith("/p")}
    assert held["/p/1"] == "2"
    assert "/p" not in held


def test_writes_to_other_paths_neither_stop_a_merge_nor_get_lost(forked: Database) -> None:
    stop = threading.Event()
    written: list[str] = []

    def write_on(number: int) -> None:
        count = 0
        while not stop.is_set():
            count += 1
            write(forked, {f"/w/{number}-{count}": "x"})
            written.append(f"/w/{number}-{count}")

    writers = [threading.Thread(target=write_on, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    try:
        for number in range(10):
            write(forked, {"/theirs": str(number), f"/f/{number}": "x"}, "f")
            merge_versions(forked, "f")
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    found = contents(forked)
    assert set(written) <= set(found)
    assert {f"/f/{number}" for number in range(10)} <= set(found)
    assert found["/theirs"] == "9"


PATHS = st.sampled_from(["/a", "/b", "/d/a", "/d/b", "/d/e/a", "/x/y/z"])
CHANGES = st.dictionaries(PATHS, st.sampled_from(["1", "2", None]), max_size=5)


@settings(max_examples=40)
@given(base=st.dictionaries(PATHS, st.just("0"), min_size=1), ours=CHANGES, theirs=CHANGES)
def test_a_merge_does_to_each_path_what_either_side_did(
    tmp_path_factory: pytest.TempPathFactory,
    base: dict[str, str],
    ours: dict[str, str | None],
    theirs: dict[str, str | None],
) -> None:
    with Database(tmp_path_factory.mktemp("merge") / "m.svcdb") as database:
        write(database, dict(base))
        create_fork(database, "f")
        before = database.head().root
        apply_changes(database, base, ours, None)
        apply_changes(database, base, theirs, "f")
        mine, other = contents(database), contents(database, "f")
        expected: dict[str, str] = {}
        conflicts = set()
        for path in {*base, *mine, *other}:
            was, one, two = base.get(path), mine.get(path), other.get(path)
            if one != two and was not in (one, two):
                conflicts.add(path)
            chosen = two if one == was else one
            if chosen is not None:
                expected[path] = chosen
        if conflicts:
            assert {one["path"] for one in conflicts_of(database, "f")} == conflicts
            merge_versions(database, "f", "HEAD", "ours")
        else:
            merge_versions(database, "f")
        assert contents(database) == expected
        assert edited(database, before, database.head().root)


def apply_changes(
    database: Database, base: dict[str, str], changes: dict[str, str | None], fork: str | None
) -> None:
    write(
        database,
        {path: text for path, text in changes.items() if text is not None or path in base} or {"/k": "k"},
        fork,
    )


def edited(database: Database, before: bytes, after: bytes) -> bool:
    """Whether the edits between two trees cover exactly the files that differ."""
    edits = list(edits_between(database.objects, before, after))
    differing = {change.path for change in diff(database.objects, before, after)}
    return all(any(path[: len(edit.path)] == edit.path for edit in edits) for path in differing)


def test_the_newest_common_state_is_found_across_jumps(database: Database, database_path: Path) -> None:
    roots = [b""]
    for number in range(1, 6):
        write(database, {"/a": str(number)})
        roots.append(database.head().root)
    base = database.head().sequence - 5
    with database.transaction() as transaction:
        transaction.set_ref("HEAD", roots[2])
    write(database, {"/b": "1"})
    head = database.head().sequence
    assert common_ancestor(database, base + 1, base + 5) == base + 1
    assert common_ancestor(database, head, base + 5) == base + 2
    assert common_ancestor(database, base + 5, head) == base + 2
    assert common_ancestor(database, head, base + 1) == base + 1
    assert common_ancestor(database, head, head) == head
    assert common_ancestor(database, 0, head) == 0
    with Database(database_path) as again:
        assert common_ancestor(again, head, base + 5) == base + 2


def test_a_conflict_says_what_differs_where_the_contents_are_equal(database: Database) -> None:
    with database.transaction() as changes:
        changes.put(("a",), b"1", content_type="text/plain")
        changes.put(("b",), b"1")
        changes.put(("c",), b"1")
    create_fork(database, "draft")
    for ref, kind in (("HEAD", "text/x-one"), ("forks/draft", "text/x-two")):
        with database.transaction(ref=ref) as changes:
            changes.put(("a",), b"2", content_type=kind)
            changes.put(("b",), kind.encode())
            if ref == "HEAD":
                changes.delete(("c",))
            else:
                changes.put(("c",), b"2")
    with pytest.raises(Conflict) as refused:
        merge_versions(database, "draft")
    conflicts = refused.value.details["conflicts"]
    assert {one["path"]: one["differs"] for one in conflicts} == {
        "/a": ["content_type"],
        "/b": ["content"],
        "/c": ["existence"],
    }
    assert conflicts[0]["ours"]["content_type"] == "text/x-one"


# What is decided path by path ------------------------------------------------------------------------------


@pytest.fixture
def conflicting(forked: Database) -> Database:
    """Both sides changed four paths, and one of them deleted another."""
    write(forked, {"/same": "1", "/ours": "1", "/theirs": "1", "/d/1": "1", "/both": None})
    write(forked, {"/same": "2", "/ours": "2", "/theirs": "2", "/d/1": "2", "/both": "2", "/new": "2"}, "f")
    return forked


def test_each_conflict_is_decided_for_itself_in_one_commit(conflicting: Database) -> None:
    before = conflicting.head().sequence
    done = merge_versions(
        conflicting,
        "f",
        resolutions=[
            Resolution(path="/same", take="text", content="1 and 2"),
            Resolution(path="/ours", take="ours"),
            Resolution(path="/theirs", take="theirs"),
            Resolution(path="/d/1", take="both"),
            Resolution(path="/both", take="both"),
        ],
    )
    assert contents(conflicting) == {
        "/same": "1 and 2", "/ours": "1", "/theirs": "2", "/d/1": "1", "/d/1 (theirs)": "2", "/both": "2",
        "/e/1": "0", "/new": "2",
    }  # fmt: skip
    assert conflicting.head().sequence == before + 1
    assert done.committed
    # It is merged: the same merge has nothing left to do.
    assert not merge_versions(conflicting, "f", strategy="ours").committed


def test_what_nobody_decided_is_refused_or_left_to_the_strategy(conflicting: Database) -> None:
    one = [Resolution(path="/same", take="theirs")]
    with pytest.raises(Conflict) as refused:
        merge_versions(conflicting, "f", resolutions=one)
    listed = [conflict["path"] for conflict in refused.value.details["conflicts"]]
    assert listed == ["/both", "/d/1", "/ours", "/theirs"]
    merge_versions(conflicting, "f", strategy="theirs", resolutions=[Resolution(path="/ours", take="ours")])
    assert contents(conflicting) == {
        "/same": "2", "/ours": "1", "/theirs": "2", "/d/1": "2", "/both": "2", "/e/1": "0", "/new": "2",
    }  # fmt: skip


@pytest.mark.parametrize(
    "resolutions",
    [
        [Resolution(path="/e/1", take="ours")],
        [Resolution(path="/nothing", take="theirs")],
        [Resolution(path="/same", take="ours"), Resolution(path="/same", take="theirs")],
        [Resolution(path="/same", take="text")],
    ],
)
def test_a_resolution_is_of_a_conflict(conflicting: Database, resolutions: list[Resolution]) -> None:
    head = conflicting.head().root
    with pytest.raises(InvalidInput):
        merge_versions(conflicting, "f", strategy="ours", resolutions=resolutions)
    assert conflicting.head().root == head


def test_a_side_that_has_changed_since_it_was_looked_at_is_not_decided(conflicting: Database) -> None:
    seen = next(one for one in conflicts_of(conflicting, "f") if one["path"] == "/same")
    decided = Resolution(
        path="/same", take="text", content="x", ours=seen["ours"]["hash"], theirs=seen["theirs"]["hash"]
    )
    write(conflicting, {"/same": "3"})
    with pytest.raises(Conflict, match="has changed since"):
        merge_versions(conflicting, "f", strategy="ours", resolutions=[decided])
    gone = Resolution(path="/both", take="theirs", ours="")
    merge_versions(conflicting, "f", strategy="ours", resolutions=[gone])
    assert contents(conflicting)["/both"] == "2"


def test_conflicts_that_may_not_be_seen_cannot_be_decided(conflicting: Database) -> None:
    with pytest.raises(InvalidInput, match="no conflict"):
        merge_versions(
            conflicting, "f", strategy="ours", shows=lambda path: path != ("same",),
            resolutions=[Resolution(path="/same", take="theirs")],
        )  # fmt: skip
