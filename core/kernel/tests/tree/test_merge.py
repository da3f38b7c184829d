from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.errors import InvalidInput
from svc.tree import (
    NO_TOTALS,
    Entry,
    EntryKind,
    build,
    check_directory,
    directory_entry,
    edit,
    empty_directory,
    merge,
    resolve,
    totals,
    walk,
)
from svc_testing.memory_nodes import MemoryNodeStore, build_tree


def file(number: int, at_ms: int = 20) -> Entry:
    return Entry(EntryKind.FILE, number.to_bytes(32, "big"), number, 10, at_ms)


def empty(at_ms: int) -> Entry:
    return Entry(EntryKind.DIRECTORY, empty_directory(MemoryNodeStore()), 0, at_ms, at_ms, totals=NO_TOTALS)


LINK = Entry(EntryKind.SYMLINK, bytes(32), 2, 5, 5, target="/a")


class Dir(dict):
    """A directory of the model. own_ms: its time while it is empty."""

    own_ms = 0


def model_of(contents):
    root = Dir()
    for path, entry in contents.items():
        inside = root
        for name in path[:-1]:
            inside = inside.setdefault(name, Dir())
        if entry.kind is EntryKind.DIRECTORY:
            inside[path[-1]] = Dir()
            inside[path[-1]].own_ms = entry.created_ms
        else:
            inside[path[-1]] = entry
    return root


def same(left, right):
    if isinstance(left, Dir) and isinstance(right, Dir):
        if not left and not right:
            return left.own_ms == right.own_ms
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    return not isinstance(left, Dir) and not isinstance(right, Dir) and left == right


def merged(base, ours, theirs, strategy, emptied_ms, path, conflicts):
    """The merge rule, told over nested dictionaries and all names."""
    if same(ours, theirs) or same(base, theirs):
        return ours
    if same(base, ours):
        return theirs
    is_leaf = [value is not None and not isinstance(value, Dir) for value in (base, ours, theirs)]
    if not is_leaf[1] and not is_leaf[2]:
        if not isinstance(base, Dir) and (ours is None or theirs is None):
            return ours if theirs is None else theirs
        inner_base = base if isinstance(base, Dir) else Dir()
        result = Dir()
        for name in sorted(inner_base.keys() | (ours or {}).keys() | (theirs or {}).keys()):
            value = merged(
                inner_base.get(name),
                (ours or {}).get(name),
                (theirs or {}).get(name),
                strategy, emptied_ms, (*path, name), conflicts,
            )  # fmt: skip
            if value is not None:
                result[name] = value
        if not result and (ours is None or theirs is None):
            return None
        result.own_ms = emptied_ms
        if not ours and not theirs:
            result.own_ms = max(ours.own_ms, theirs.own_ms)
        elif ours == {}:
            result.own_ms = ours.own_ms
        return result
    if ours is None or theirs is None:
        if not is_leaf[0]:
            return ours if theirs is None else theirs
        conflicts[path] = "modify_delete"
    elif is_leaf[1] and is_leaf[2]:
        conflicts[path] = "modify_modify" if is_leaf[0] else "add_add"
    else:
        conflicts[path] = "file_directory"
    return theirs if strategy == "theirs" else ours


def root_of(store, model):
    own = {}
    for name, value in model.items():
        own[name] = value
        if isinstance(value, Dir):
            own[name] = directory_entry(store, root_of(store, value), value.own_ms)
    return build(store, sorted(own.items()))


paths = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map(tuple)
values = st.sampled_from([file(1), file(2), file(3, 30), LINK, empty(3), empty(4)])


def without_overlaps(chosen):
    return {p: e for p, e in chosen.items() if not any(p[:i] in chosen for i in range(1, len(p)))}


contents = st.dictionaries(paths, values, max_size=7).map(without_overlaps)
edits = st.dictionaries(paths, st.one_of(st.none(), values), max_size=4)


def edited(base, changes):
    """The base with some paths changed; a changed path takes the place of what is above or below it."""
    result = dict(base)
    for path, entry in changes.items():
        for other in list(result):
            if other[: len(path)] == path or (entry is not None and path[: len(other)] == other):
                del result[other]
        if entry is not None:
            result[path] = entry
    return result


@settings(max_examples=300)
@given(contents, edits, edits, st.sampled_from(["fail", "ours", "theirs"]))
def test_a_merge_is_what_the_rule_says_of_nested_dictionaries(base, our_edits, their_edits, strategy):
    store = MemoryNodeStore()
    sides = [base, edited(base, our_edits), edited(base, their_edits)]
    roots = [build_tree(store, side) for side in sides]
    models = [model_of(side) for side in sides]
    latest_ms = max(totals(store, root).updated_ms for root in roots)
    conflicts = {}
    expected = merged(*models, strategy, latest_ms, (), conflicts)
    result = merge(store, *roots, strategy)
    assert {conflict.path: conflict.kind for conflict in result.conflicts} == conflicts
    assert [conflict.path for conflict in result.conflicts] == sorted(conflicts)
    for conflict in result.conflicts:
        seen = tuple(resolve(store, root, conflict.path) for root in roots)
        assert (conflict.base, conflict.ours, conflict.theirs) == seen
    if strategy == "fail" and conflicts:
        assert result.root is None
    else:
        assert result.root == root_of(store, expected)
        check_directory(store, result.root)


@settings(max_examples=200)
@given(contents, edits, edits)
def test_a_merge_without_conflicts_is_the_same_from_either_side(base, our_edits, their_edits):
    store = MemoryNodeStore()
    sides = (base, edited(base, our_edits), edited(base, their_edits))
    base_root, ours, theirs = (build_tree(store, side) for side in sides)
    one, other = merge(store, base_root, ours, theirs), merge(store, base_root, theirs, ours)
    assert one.root == other.root
    assert [c.path for c in one.conflicts] == [c.path for c in other.conflicts]


def test_changes_to_different_files_of_one_large_directory_come_together():
    store = MemoryNodeStore()
    start = {f"{n:05d}": file(n + 10) for n in range(20_000)}
    base = build(store, start.items())
    ours = edit(store, base, {"00005": file(1), "10000": None})
    theirs = edit(store, base, {"00006": file(2), "10001": None, "20001": file(3)})
    before = store.reads
    result = merge(store, base, ours, theirs)
    assert store.reads - before < 150
    changed = {"00005": file(1), "00006": file(2), "20001": file(3), "10000": None, "10001": None}
    assert result.conflicts == []
    assert result.root == edit(store, base, changed)


def test_a_merge_that_fails_writes_nothing():
    store = MemoryNodeStore()
    base, ours, theirs = (build_tree(store, {("a",): file(n), ("b",): file(n)}) for n in (1, 2, 3))
    written = store.writes
    result = merge(store, base, ours, theirs)
    assert (result.root, [c.path for c in result.conflicts]) == (None, [("a",), ("b",)])
    assert store.writes == written


def test_a_side_that_did_not_change_gives_way_without_being_read():
    store = MemoryNodeStore()
    base, other = build_tree(store, {("a",): file(1)}), build_tree(store, {("b",): file(1)})
    before = store.reads
    for ours, theirs in ((base, other), (other, base), (other, other)):
        assert merge(store, base, ours, theirs).root == other
    assert store.reads == before


def test_a_deleted_directory_comes_back_for_a_file_that_the_other_side_added_to_it():
    store = MemoryNodeStore()
    base = build_tree(store, {("d", "old"): file(1), ("x",): file(1)})
    ours = build_tree(store, {("x",): file(1)})
    theirs = build_tree(store, {("d", "old"): file(1), ("d", "new"): file(2), ("x",): file(1)})
    for one, other in ((ours, theirs), (theirs, ours)):
        result = merge(store, base, one, other)
        assert result.conflicts == []
        assert [p for p, _ in walk(store, result.root)] == [("d",), ("d", "new"), ("x",)]


def test_an_unknown_strategy_is_refused():
    store = MemoryNodeStore()
    root = empty_directory(store)
    with pytest.raises(InvalidInput):
        merge(store, root, root, root, "both")


def test_files_that_differ_in_their_times_only_are_no_conflict():
    store = MemoryNodeStore()
    names = [("both",), ("ours",), ("theirs",), ("gone",)]
    base = build_tree(store, {path: file(number) for number, path in enumerate(names, 1)})
    ours = {("both",): file(9, 30), ("ours",): file(2, 35), ("theirs",): file(8), ("gone",): file(4, 36)}
    theirs = {("both",): file(9, 40), ("ours",): file(7), ("theirs",): file(3, 37)}
    expected = build_tree(store, {("both",): file(9, 40), ("ours",): file(7), ("theirs",): file(8)})
    for one, other in ((ours, theirs), (theirs, ours)):
        result = merge(store, base, build_tree(store, one), build_tree(store, other))
        assert result.conflicts == []
        assert result.root == expected
