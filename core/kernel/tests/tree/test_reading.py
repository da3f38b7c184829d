from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import CorruptRecord
from svc.tree import (
    NO_TOTALS,
    Entry,
    EntryKind,
    build,
    directory_entry,
    empty_directory,
    entries,
    entry_count,
    lookup,
    rank,
    resolve,
    walk,
    walk_files,
)
from svc_testing.memory_nodes import MemoryNodeStore, build_tree


def file(number: int) -> Entry:
    return Entry(EntryKind.FILE, number.to_bytes(32, "big"), number, 1000 + number, 2000 + number)


LINK = Entry(EntryKind.SYMLINK, bytes(32), 2, 5, 5, target="/a")


def empty(at_ms: int = 77) -> Entry:
    return Entry(EntryKind.DIRECTORY, empty_directory(MemoryNodeStore()), 0, at_ms, at_ms, totals=NO_TOTALS)


def everything_below(contents):
    """What a walk yields, from a dictionary alone: the paths, with the directories above them."""
    paths = {path[:depth] for path in contents for depth in range(1, len(path) + 1)}
    return sorted(paths)


sizes = st.sampled_from([0, 1, 15, 16, 40, 300, 2000])


@given(sizes, st.integers(-1, 4100), st.integers(0, 2100), st.booleans())
def test_a_page_of_a_directory_is_a_slice_of_its_sorted_names(size, after, offset, reverse):
    store = MemoryNodeStore()
    names = [f"{2 * number:05d}" for number in range(size)]
    root = build(store, [(text, file(n)) for n, text in enumerate(names)])
    mark = None if after < 0 else f"{after:05d}"
    found = [text for text, _ in entries(store, root, after=mark, offset=offset, reverse=reverse)]
    if reverse:
        assert found == [text for text in reversed(names) if mark is None or text < mark][offset:]
    else:
        assert found == [text for text in names if mark is None or text > mark][offset:]
    assert entry_count(store, root) == size
    assert rank(store, root, mark or "") == len([text for text in names if text < (mark or "")])


def test_a_lookup_finds_every_name_and_no_other():
    store = MemoryNodeStore()
    root = build(store, [(f"{n:05d}", file(n)) for n in range(1500)])
    assert all(lookup(store, root, f"{n:05d}") == file(n) for n in range(1500))
    assert [lookup(store, root, text) for text in ("", "0", "00000x", "01499x", "99999")] == [None] * 5


def test_reaching_the_middle_of_a_large_directory_reads_a_few_nodes():
    store = MemoryNodeStore()
    root = build(store, [(f"{n:06d}", file(n)) for n in range(40_000)])
    for reach in (
        lambda: lookup(store, root, "020000"),
        lambda: next(entries(store, root, after="020000")),
        lambda: next(entries(store, root, offset=20_000)),
        lambda: next(entries(store, root, after="020000", reverse=True)),
        lambda: next(walk(store, root, after=("020000",))),
        lambda: rank(store, root, "020000"),
    ):
        before = store.reads
        reach()
        assert store.reads - before < 20


segments = st.sampled_from(["a", "ab", "b", "c", "é", "z"])
paths = st.lists(segments, min_size=1, max_size=4).map(tuple)


def without_overlaps(chosen):
    """Drops the paths that lie below another: a file holds nothing."""
    return {path for path in chosen if not any(path[:depth] in chosen for depth in range(1, len(path)))}


trees = st.sets(paths, max_size=12).map(without_overlaps)
kinds = st.lists(st.sampled_from([file(1), LINK, empty()]), min_size=12, max_size=12)


@given(trees, kinds, st.one_of(st.none(), paths, st.just(())), st.one_of(st.just(()), paths))
def test_a_walk_from_any_point_is_the_rest_of_the_sorted_paths(chosen, kinds, after, start):
    store = MemoryNodeStore()
    contents = dict(zip(sorted(chosen), kinds, strict=False))
    root = build_tree(store, contents)
    expected = [
        path
        for path in everything_below(contents)
        if path[: len(start)] == start and path != start and (after is None or path > after)
    ]
    found = list(walk(store, root, start, after=after))
    assert [path for path, _ in found] == expected
    assert all(resolve(store, root, path) == entry for path, entry in found)
    for depth in range(3):
        shallow = [path for path, _ in walk(store, root, start, after=after, max_depth=depth)]
        assert shallow == [path for path in expected if len(path) <= len(start) + depth + 1]
    leaves = [path for path, _ in walk(store, root, start, after=after, files_only=True)]
    assert leaves == [p for p in expected if p in contents and contents[p].kind is not EntryKind.DIRECTORY]


def files_among(contents):
    return {path for path, entry in contents.items() if entry.kind is EntryKind.FILE}


def directories_of(files):
    return {path[:depth] for path in files for depth in range(1, len(path))}


@given(trees, kinds, st.one_of(st.none(), paths, st.just(())), st.one_of(st.just(()), paths))
def test_a_walk_of_files_gives_them_and_the_directories_on_the_way(chosen, kinds, after, start):
    store = MemoryNodeStore()
    contents = dict(zip(sorted(chosen), kinds, strict=False))
    root = build_tree(store, contents)
    files = files_among(contents)

    def expected(depth):
        return [
            path
            for path in sorted(files | directories_of(files))
            if path[: len(start)] == start
            and path != start
            and (after is None or path > after)
            and (depth < 0 or len(path) <= len(start) + depth + 1)
        ]

    for depth in range(-1, 3):
        found = list(walk_files(store, root, start, after=after, max_depth=depth))
        assert [path for path, _ in found] == expected(depth)
        for path, entry in found:
            assert entry == (resolve(store, root, path) if path in files else None)


@given(trees, kinds, st.one_of(st.none(), paths), st.sets(paths, max_size=4))
def test_a_walk_of_files_leaves_out_what_lies_below_directories_that_are_not_entered(
    chosen, kinds, after, closed
):
    store = MemoryNodeStore()
    contents = dict(zip(sorted(chosen), kinds, strict=False))
    root = build_tree(store, contents)
    files = files_among(contents)
    expected = [
        path
        for path in sorted(files | directories_of(files))
        if (after is None or path > after)
        and not any(path[:depth] in closed for depth in range(1, len(path)))
    ]
    found = [path for path, _ in walk_files(store, root, after=after, enters=lambda path: path not in closed)]
    assert found == expected


@given(trees, kinds, st.one_of(st.none(), paths), st.one_of(st.just(()), paths), st.integers(0, 14))
def test_an_offset_leaves_out_files_only(chosen, kinds, after, start, offset):
    store = MemoryNodeStore()
    contents = dict(zip(sorted(chosen), kinds, strict=False))
    root = build_tree(store, contents)
    whole = [path for path, entry in walk_files(store, root, start, after=after) if entry is not None]
    found = [path for path, entry in walk_files(store, root, start, after=after, offset=offset) if entry]
    assert found == whole[offset:]


@pytest.mark.parametrize("offset", [0, 1, 999, 19_999, 39_998, 39_999, 40_000, 10**18])
def test_an_offset_of_any_size_reads_a_few_nodes(offset):
    store = MemoryNodeStore()
    root = build_tree(
        store,
        {(f"d{n // 400:03d}", f"e{n // 20 % 20:02d}", f"f{n % 20:02d}"): file(n) for n in range(40_000)},
    )
    before = store.reads
    found = next((entry for _, entry in walk_files(store, root, offset=offset) if entry), None)
    assert store.reads - before < 20
    assert found == (file(offset) if offset < 40_000 else None)


def test_a_walk_of_files_passes_over_what_holds_none():
    store = MemoryNodeStore()
    links = {("links", f"l{n:05d}"): LINK for n in range(20_000)}
    bare = {("bare", f"d{n:05d}"): empty() for n in range(20_000)}
    root = build_tree(store, links | bare | {("links", "zzz"): file(1), ("a",): file(2)})
    before = store.reads
    found = [path for path, _ in walk_files(store, root)]
    assert found == [("a",), ("links",), ("links", "zzz")]
    assert store.reads - before < 20


def test_a_walk_for_files_does_not_open_directories_without_any():
    store = MemoryNodeStore()
    contents = {(f"d{n:03d}", f"e{m}"): empty() for n in range(50) for m in range(3)} | {("x",): file(1)}
    root = build_tree(store, contents)
    before = store.reads
    assert [path for path, _ in walk(store, root, files_only=True)] == [("x",)]
    assert store.reads - before < 10


def test_paths_lead_through_directories_only_and_the_root_has_an_entry_too():
    store = MemoryNodeStore()
    root = build_tree(store, {("a", "b"): file(3), ("l",): LINK, ("e",): empty()})
    assert resolve(store, root, ("a", "b")) == file(3)
    assert resolve(store, root, ("e",)) == empty()
    for missing in (("x",), ("a", "x"), ("a", "b", "c"), ("l", "b"), ("e", "e")):
        assert resolve(store, root, missing) is None
    top = resolve(store, root, ())
    assert top is not None
    assert (top.kind, top.hash, top.size, top.created_ms, top.updated_ms) == (
        EntryKind.DIRECTORY,
        root,
        3,
        5,
        2003,
    )
    assert list(walk(store, root, ("a", "b"))) == list(walk(store, root, ("x",))) == []


def test_times_of_a_directory_are_those_of_what_it_holds_and_its_own_only_while_it_is_empty():
    store = MemoryNodeStore()
    full = build_tree(store, {("a", "old"): file(1), ("b",): file(9)})
    assert directory_entry(store, full, 5) == directory_entry(store, full, 6)
    assert (directory_entry(store, full, 5).created_ms, directory_entry(store, full, 5).updated_ms) == (
        1001,
        2009,
    )
    bare = directory_entry(store, empty_directory(store), 5)
    assert (bare.created_ms, bare.updated_ms, bare.totals) == (5, 5, NO_TOTALS)


def test_a_tree_two_thousand_directories_deep_is_walked():
    store = MemoryNodeStore()
    root = build(store, [("f", file(1))])
    for _ in range(2000):
        root = build(store, [("d", directory_entry(store, root, 0))])
    assert sum(1 for _ in walk(store, root)) == 2001
    assert resolve(store, root, ("d",) * 2000 + ("f",)) == file(1)


def test_a_missing_node_is_reported_as_damage():
    store = MemoryNodeStore()
    root = build(store, [(f"{n:05d}", file(n)) for n in range(1500)])
    victim = next(h for h, payload in store.payloads.items() if b"00700" in payload and h != root)
    fresh = MemoryNodeStore()
    fresh.payloads = {h: payload for h, payload in store.payloads.items() if h != victim}
    with pytest.raises(CorruptRecord):
        list(entries(fresh, root))
