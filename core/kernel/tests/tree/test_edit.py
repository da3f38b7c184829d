from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from svc.errors import InvalidInput, InvalidPath
from svc.tree import (
    NO_TOTALS,
    Entry,
    EntryKind,
    Inner,
    Totals,
    build,
    check_directory,
    edit,
    empty_directory,
    entries,
    entry_count,
    lookup,
    totals,
    walk_nodes,
)
from svc_testing.memory_nodes import MemoryNodeStore


def file(number: int, version: int = 0) -> Entry:
    content = (number * 1000 + version).to_bytes(32, "big")
    return Entry(EntryKind.FILE, content, number, 1000 + number, 2000 + number + version, "text/plain")


def name(number: int) -> str:
    return f"f{number:05d}"


def directory_of(numbers) -> dict[str, Entry]:
    return {name(number): file(number) for number in sorted(numbers)}


numbers = st.lists(
    st.tuples(st.integers(0, 900), st.integers(1, 300), st.integers(1, 3)).map(
        lambda span: range(span[0], span[0] + span[1], span[2])
    ),
    max_size=4,
).map(lambda spans: {number for span in spans for number in span})
steps = st.lists(st.tuples(numbers, st.one_of(st.none(), st.integers(0, 2))), max_size=5)


@given(numbers, steps)
def test_any_edits_that_end_in_the_same_content_give_the_root_that_building_it_gives(start, steps):
    store = MemoryNodeStore()
    content = directory_of(start)
    root = build(store, content.items())
    for chosen, version in steps:
        changes = {name(n): None if version is None else file(n, version) for n in chosen}
        root = edit(store, root, changes)
        content.update(changes)
        content = {key: entry for key, entry in sorted(content.items()) if entry is not None}
        assert root == build(MemoryNodeStore(), content.items())
        check_directory(store, root)
    assert dict(entries(store, root)) == content


@given(numbers, st.randoms(use_true_random=False))
def test_the_order_in_which_single_entries_arrive_and_leave_does_not_show(chosen, random):
    chosen = set(list(chosen)[:120])
    arrivals = list(chosen)
    random.shuffle(arrivals)
    store = MemoryNodeStore()
    root = empty_directory(store)
    for number in arrivals:
        root = edit(store, root, {name(number): file(number)})
        root = edit(store, root, {name(number) + "x": file(number)})
    for number in sorted(arrivals, key=lambda n: -n):
        root = edit(store, root, {name(number) + "x": None})
    assert root == build(MemoryNodeStore(), directory_of(chosen).items())


def test_what_changes_nothing_writes_nothing_and_keeps_the_root():
    store = MemoryNodeStore()
    root = build(store, directory_of(range(500)).items())
    written = store.writes
    assert edit(store, root, {}) == root
    assert edit(store, root, {name(7): file(7), "absent": None, "f": None, "z": None}) == root
    assert store.writes == written


def test_a_directory_emptied_in_one_edit_is_the_empty_directory():
    store = MemoryNodeStore()
    content = directory_of(range(3000))
    root = build(store, content.items())
    assert store.read_node(root).level >= 2
    assert edit(store, root, dict.fromkeys(content)) == empty_directory(store)
    keep = name(1234)
    assert edit(store, root, dict.fromkeys(set(content) - {keep})) == build(store, [(keep, content[keep])])


def test_one_change_in_a_large_directory_rewrites_one_path_and_rarely_a_neighbour():
    store = MemoryNodeStore()
    root = build(store, directory_of(range(50_000)).items())
    height = store.read_node(root).level + 1
    written = store.writes
    for number in range(0, 50_000, 500):
        root = edit(store, root, {name(number): file(number, 1)})
    assert store.writes - written == 100 * height
    written = store.writes
    for number in range(0, 50_000, 500):
        root = edit(store, root, {name(number) + "-new": file(number)})
    assert store.writes - written < 100 * height * 1.5


def is_boundary(text: str, level: int = 0) -> bool:
    return xxh3_64_intdigest(text.encode(), level) % 16 == 0


@pytest.mark.parametrize("boundary", [True, False])
def test_names_ground_to_be_all_boundaries_or_none_still_make_a_sound_directory(boundary):
    ground = [
        next(text for i in count() if is_boundary(text := f"{number:04d}-{i}") is boundary)
        for number in range(700)
    ]
    store = MemoryNodeStore()
    content = {text: file(number) for number, text in enumerate(ground)}
    root = build(store, content.items())
    sizes = {len(node.names) for _, node in walk_nodes(store, root) if not isinstance(node, Inner)}
    assert sizes == ({16, 700 % 16} if boundary else {64, 700 % 64})
    for position in (0, 350, 699):
        gone = ground[position]
        root = edit(store, root, {gone: None})
        del content[gone]
        assert root == build(MemoryNodeStore(), content.items())
        check_directory(store, root)
    root = edit(store, root, {"0": file(1)})
    assert root == build(MemoryNodeStore(), {"0": file(1), **content}.items())


def test_names_are_ordered_by_code_point_whatever_their_script():
    store = MemoryNodeStore()
    names = ["Z", "a", "é", "\uffff", "𐀀", "😀", "a\u0301", "-"]
    root = edit(store, empty_directory(store), {text: file(1) for text in names})
    assert [text for text, _ in entries(store, root)] == sorted(names, key=lambda text: text.encode())


def test_totals_count_everything_below_and_leave_link_targets_out_of_the_size():
    store = MemoryNodeStore()
    inside = build(store, directory_of(range(1, 101)).items())
    below = totals(store, inside)
    assert below == Totals(files=100, size=5050, created_ms=1001, updated_ms=2100)
    content = {
        "d": Entry(EntryKind.DIRECTORY, inside, below.size, below.created_ms, below.updated_ms, totals=below),
        "e": Entry(EntryKind.DIRECTORY, empty_directory(store), 0, 500, 500, totals=NO_TOTALS),
        "f": file(7),
        "l": Entry(EntryKind.SYMLINK, bytes(32), 9, 10_000, 10_000, target="/d/f00001"),
    }
    root = build(store, content.items())
    assert totals(store, root) == Totals(101, 2, 1, 5057, 500, 10_000)
    assert entry_count(store, root) == 4
    assert {key: lookup(store, root, key) for key in content} == content


def test_sums_beyond_any_file_system_stop_at_the_maximum_in_any_order():
    store = MemoryNodeStore()
    root = build(store, directory_of(range(1, 200)).items())
    for _ in range(70):
        below = totals(store, root)
        copy = Entry(EntryKind.DIRECTORY, root, below.size, below.created_ms, below.updated_ms, totals=below)
        root = edit(store, empty_directory(store), {"one": copy, "two": copy})
        assert root == build(MemoryNodeStore(), [("one", copy), ("two", copy)])
    assert totals(store, root).files == totals(store, root).size == 2**63 - 1


@pytest.mark.parametrize("bad", ["", ".", "..", "a/b", "a\0b", "x" * 256, "\ud800"])
def test_a_name_that_no_path_can_hold_is_refused(bad):
    store = MemoryNodeStore()
    with pytest.raises(InvalidPath):
        edit(store, empty_directory(store), {bad: file(1)})


@pytest.mark.parametrize(
    "entry",
    [
        Entry(EntryKind.FILE, b"short", 0, 0, 0),
        Entry(EntryKind.FILE, bytes(32), -1, 0, 0),
        Entry(EntryKind.FILE, bytes(32), 2**63, 0, 0),
        Entry(EntryKind.FILE, bytes(32), 0, -5, 0),
        Entry(EntryKind.FILE, bytes(32), 0, 0, 0, record=b"short"),
        Entry(EntryKind.FILE, bytes(32), 0, 0, 0, target="/a"),
        Entry(EntryKind.FILE, bytes(32), 0, 0, 0, totals=NO_TOTALS),
        Entry(EntryKind.FILE, bytes(32), 0, 0, 0, content_type="x" * 256),
        Entry(EntryKind.SYMLINK, bytes(32), 0, 0, 0),
        Entry(EntryKind.SYMLINK, bytes(32), 0, 0, 0, target="/" + "x" * 4096),
        Entry(EntryKind.SYMLINK, bytes(32), 0, 0, 0, target="/a", content_type="text/plain"),
        Entry(EntryKind.DIRECTORY, bytes(32), 0, 0, 0),
        Entry(EntryKind.DIRECTORY, bytes(32), 7, 0, 0, totals=NO_TOTALS),
        Entry(EntryKind.DIRECTORY, bytes(32), 0, 1, 2, totals=NO_TOTALS),
        Entry(EntryKind.DIRECTORY, bytes(32), 7, 1, 2, totals=Totals(1, 0, 0, 8, 1, 2)),
    ],
)
def test_an_entry_that_does_not_fit_its_kind_is_refused(entry):
    store = MemoryNodeStore()
    with pytest.raises(InvalidInput):
        edit(store, empty_directory(store), {"a": entry})


@pytest.mark.parametrize("names", [["b", "a"], ["a", "a"]])
def test_building_from_names_out_of_order_is_refused(names):
    with pytest.raises(InvalidInput):
        build(MemoryNodeStore(), [(text, file(1)) for text in names])


def test_building_many_entries_reads_them_in_batches_and_gives_what_edits_give():
    store = MemoryNodeStore()
    content = directory_of(range(9_000))
    root = build(store, iter(content.items()))
    assert root == edit(store, empty_directory(store), content)
    assert entry_count(store, root) == 9_000
