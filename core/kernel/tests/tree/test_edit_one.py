from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from svc.tree import Entry, EntryKind, Inner, Totals, build, decode_node, edit, entries
from svc.tree.codec import encode_names
from svc.tree.edit_one import edit_one
from svc_testing.memory_nodes import MemoryNodeStore


class KeepingStore(MemoryNodeStore):
    """Hands out the very nodes that it was given, as the database's cache does."""

    def __init__(self):
        self.given = {}
        super().__init__()

    def read_node(self, node_hash, /):
        return self.given.get(node_hash) or super().read_node(node_hash)

    def write_node(self, payload, node=None, /):
        node_hash = super().write_node(payload, node)
        if node is not None:
            self.given.setdefault(node_hash, node)
        return node_hash

    def check(self):
        """What a node brought along is what decoding its payload would tell."""
        for node_hash, node in self.given.items():
            assert node.summary() == decode_node(self.payloads[node_hash]).summary()
            assert node.encoded_names in {None, encode_names(node.names)}


def name(number: int) -> str:
    return f"{'é😀-'[number % 3]}{number:04d}{'x' * (number % 40)}"


def entry(number: int, version: int) -> Entry:
    kind = (number + version) % 5
    time = 1000 + version
    if kind == 0:
        return Entry(EntryKind.SYMLINK, bytes(32), 3, time, time, target=f"/{number}")
    if kind == 1:
        totals = Totals(300 + number, version, 1, number, 900, time)
        return Entry(EntryKind.DIRECTORY, bytes([version]) * 32, number, 900, time, totals=totals)
    record = b"r" * 32 if kind == 2 else None
    types = (None, "text/plain", "image/png")
    return Entry(EntryKind.FILE, bytes([version]) * 32, number, time, time + 5, types[version % 3], record)


counts = st.sampled_from([1, 2, 14, 15, 16, 17, 40, 63, 64, 65, 400, 1500])
changes = st.lists(st.tuples(st.integers(0, 3200), st.none() | st.integers(0, 9)), min_size=1, max_size=40)


@settings(deadline=None)
@given(counts, changes)
def test_single_changes_one_after_the_other_give_what_building_the_directory_gives(count, changes):
    store = KeepingStore()
    content = {name(number): entry(number, 0) for number in range(0, count * 2, 2)}
    root = build(store, sorted(content.items()))
    for number, version in changes:
        key = name(number % (count * 2 + 3))
        content[key] = None if version is None else entry(number, version)
        root = edit(store, root, {key: content[key]})
        if version is None:
            del content[key]
    assert root == build(MemoryNodeStore(), sorted(content.items()))
    assert dict(entries(store, root)) == content
    store.check()


@pytest.mark.parametrize("count", [15, 16, 17, 31, 64, 100])
def test_it_makes_the_change_itself_or_writes_nothing_and_says_so(count):
    content = {f"{number:04d}": entry(number, 3) for number in range(count)}
    made = left = 0
    for number in range(count + 1):
        for change in (
            {f"{number:04d}": None},
            {f"{number:04d}": entry(1, 4)},
            {f"{number:04d}-": entry(1, 4)},
        ):
            store = KeepingStore()
            root = build(store, content.items())
            written = store.writes
            [(key, value)] = change.items()
            new = edit_one(store, root, key, value)
            after = sorted((k, v) for k, v in {**content, **change}.items() if v is not None)
            made, left = (made + 1, left) if new is not None else (made, left + 1)
            assert new in {None, build(MemoryNodeStore(), after)}
            assert new is not None or store.writes == written
            assert key not in content or value is None or new is not None, "a value moves no boundary"
    assert made > left * 4


def test_most_new_names_of_a_large_directory_end_no_node_elsewhere():
    store = KeepingStore()
    root = build(store, [(f"{number:05d}", entry(number, 3)) for number in range(5000)])
    assert isinstance(store.read_node(root), Inner)
    put = [edit_one(store, root, f"{number:05d}x", entry(number, 4)) for number in range(0, 5000, 50)]
    assert put.count(None) < 25


def test_a_node_that_ends_with_the_last_name_takes_none_behind_it():
    last = next(text for n in range(1000) if xxh3_64_intdigest((text := f"b{n}").encode(), 0) % 16 == 0)
    store = KeepingStore()
    root = build(
        store, [*((f"a{number:02d}", entry(number, 3)) for number in range(15)), (last, entry(1, 3))]
    )
    assert edit_one(store, root, "c", entry(1, 4)) is None
    assert edit_one(store, root, "a00x", entry(1, 4)) is not None
