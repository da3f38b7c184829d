from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from svc.tree import (
    NO_TOTALS,
    Change,
    Entry,
    EntryKind,
    WorkingTree,
    build,
    diff,
    differences,
    directory_entry,
    edit,
    empty_directory,
    resolve,
    walk,
)
from svc_testing.memory_nodes import MemoryNodeStore, build_tree


def file(number: int, version: int = 0) -> Entry:
    return Entry(EntryKind.FILE, (number * 1000 + version).to_bytes(32, "big"), number, 10, 20)


def empty(at_ms: int) -> Entry:
    return Entry(EntryKind.DIRECTORY, empty_directory(MemoryNodeStore()), 0, at_ms, at_ms, totals=NO_TOTALS)


LINK = Entry(EntryKind.SYMLINK, bytes(32), 2, 5, 5, target="/a")

contents = st.dictionaries(
    st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=4).map(tuple),
    st.sampled_from([file(1), file(2), file(1, 1), LINK, empty(3), empty(4)]),
    max_size=10,
).map(lambda chosen: {p: e for p, e in chosen.items() if not any(p[:i] in chosen for i in range(1, len(p)))})


def expected_changes(store, left, right):
    """The changes by comparing everything with everything."""
    before, after = dict(walk(store, left)), dict(walk(store, right))
    found = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        both = old is not None and new is not None
        directories = both and old.kind is new.kind is EntryKind.DIRECTORY
        if old != new and not (directories and new.totals != NO_TOTALS):
            found.append(Change(path, old, new))
    return found


@given(contents, contents)
def test_a_diff_is_what_comparing_every_path_finds(left, right):
    store = MemoryNodeStore()
    ours, theirs = build_tree(store, left), build_tree(store, right)
    assert list(diff(store, ours, theirs)) == expected_changes(store, ours, theirs)


@given(contents, contents)
def test_a_diff_applied_to_the_left_tree_gives_the_right_one(left, right):
    store = MemoryNodeStore()
    ours, theirs = build_tree(store, left), build_tree(store, right)
    tree = WorkingTree(store, ours)
    changes = list(diff(store, ours, theirs))
    for change in reversed(changes):
        replaced = change.before is not None and change.after is not None
        if change.after is None or (replaced and change.before.kind is not change.after.kind):
            tree.remove(change.path)
    for change in changes:
        if change.after is not None:
            tree.put(change.path, change.after)
    assert tree.write(99) == theirs


@given(contents, contents, st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2).map(tuple))
def test_a_diff_below_a_path_is_the_part_of_the_whole_diff_at_and_below_it(left, right, path):
    store = MemoryNodeStore()
    ours, theirs = build_tree(store, left), build_tree(store, right)
    whole = [change for change in diff(store, ours, theirs) if change.path[: len(path)] == path]
    assert list(diff(store, ours, theirs, path)) == whole


PLACES = st.lists(st.sampled_from(["a", "b", "c", "bb", "e"]), max_size=4).map(tuple)


@given(contents, contents, PLACES, st.lists(st.sampled_from(["a", "b"]), max_size=2).map(tuple))
def test_a_diff_goes_on_behind_any_path(left, right, after, path):
    store = MemoryNodeStore()
    ours, theirs = build_tree(store, left), build_tree(store, right)
    rest = [change for change in diff(store, ours, theirs, path) if change.path > after]
    assert list(diff(store, ours, theirs, path, after=after)) == rest


spans = st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 60)), max_size=6)


@given(spans, spans)
def test_directories_cut_into_different_nodes_are_compared_name_by_name(removed, changed):
    store = MemoryNodeStore()
    left = {f"{n:05d}": file(n) for n in range(3000)}
    right = dict(left)
    for start, length in removed:
        for n in range(start, start + length):
            right.pop(f"{n:05d}", None)
    for start, length in changed:
        for n in range(start, start + length, 7):
            right[f"{n:05d}"] = file(n, 5)
    ours = build(store, left.items())
    theirs = edit(store, ours, {key: right.get(key) for key in left.keys() | right.keys()})
    expected = [
        (key, left.get(key), right.get(key))
        for key in sorted(left.keys() | right.keys())
        if left.get(key) != right.get(key)
    ]
    assert list(differences(store, ours, theirs)) == expected
    assert list(differences(store, theirs, ours)) == [(key, new, old) for key, old, new in expected]
    assert list(differences(store, None, theirs)) == [(key, None, right[key]) for key in sorted(right)]
    for after in ("", "01500", "01500x", "02999", "x"):
        rest = [item for item in expected if item[0] > after]
        assert list(differences(store, ours, theirs, after=after)) == rest


def test_a_diff_that_goes_on_late_in_a_large_directory_reads_a_few_nodes():
    store = MemoryNodeStore()
    large = build(store, [(f"{n:06d}", file(n)) for n in range(60_000)])
    ours, theirs = build_tree(store, {("x",): file(1)}), build_tree(store, {("d", "x"): file(1)})
    theirs = edit(store, theirs, {"d": directory_entry(store, large, 0)})
    before = store.reads
    changes = diff(store, ours, theirs, after=("d", "050000"))
    assert next(changes).path == ("d", "050001")
    assert store.reads - before < 20


def test_ten_changes_in_a_large_directory_are_found_by_reading_a_few_nodes():
    store = MemoryNodeStore()
    ours = build(store, [(f"{n:06d}", file(n)) for n in range(60_000)])
    changes = {f"{n:06d}": file(n, 1) for n in range(0, 60_000, 12_000)}
    changes |= {f"{n:06d}x": file(n) for n in range(5_000, 60_000, 12_000)}
    theirs = edit(store, ours, changes)
    before = store.reads
    assert len(list(diff(store, ours, theirs))) == 10
    assert store.reads - before < 200


def test_a_directory_that_appears_brings_everything_below_it_and_its_vanishing_takes_it():
    store = MemoryNodeStore()
    bare = build_tree(store, {("x",): file(1)})
    full = build_tree(store, {("x",): file(1), ("d", "a"): file(2), ("d", "e", "b"): file(3)})
    paths = [("d",), ("d", "a"), ("d", "e"), ("d", "e", "b")]
    there = [Change(path, None, resolve(store, full, path)) for path in paths]
    assert list(diff(store, bare, full)) == there
    assert list(diff(store, full, bare)) == [Change(c.path, c.after, None) for c in there]


def test_equal_trees_differ_in_nothing_and_are_not_read():
    store = MemoryNodeStore()
    root = build_tree(store, {("d", "a"): file(2)})
    before = store.reads
    assert list(diff(store, root, root)) == []
    assert store.reads == before


def test_changes_two_thousand_directories_deep_are_found():
    store = MemoryNodeStore()
    ours, theirs = build(store, [("f", file(1))]), build(store, [("f", file(2))])
    for _ in range(2000):
        ours = build(store, [("d", directory_entry(store, ours, 0))])
        theirs = build(store, [("d", directory_entry(store, theirs, 0))])
    assert [len(change.path) for change in diff(store, ours, theirs)] == [2001]
