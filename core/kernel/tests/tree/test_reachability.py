from __future__ import annotations

import pytest

from svc.errors import CorruptRecord
from svc.hashing import ObjectKind, hash_object
from svc.tree import (
    Entry,
    EntryKind,
    Leaf,
    Totals,
    build,
    check_directory,
    decode_node,
    edit,
    empty_directory,
    walk_nodes,
)
from svc.tree.codec import encode_columns, leaf_columns
from svc.tree.node import Summary, inner_columns, join_columns
from svc_testing.memory_nodes import MemoryNodeStore, build_tree


def file(number: int, record: bytes | None = None) -> Entry:
    return Entry(EntryKind.FILE, number.to_bytes(32, "big"), number, 10, 20, record=record)


def names(start: int, stop: int) -> list[tuple[str, Entry]]:
    return [(f"{number:05d}", file(number)) for number in range(start, stop)]


def test_every_node_of_a_tree_is_visited_once_however_often_it_is_used():
    store = MemoryNodeStore()
    contents = {(top, "same", name): entry for top in ("a", "b") for name, entry in names(0, 300)}
    root = build_tree(store, contents)
    found = [node_hash for node_hash, _ in walk_nodes(store, root)]
    assert len(found) == len(set(found))
    assert set(found) == store.payloads.keys() - {hash_object(ObjectKind.NODE, b"")} - {
        empty_directory(store)
    }


def test_what_is_known_already_is_not_visited_nor_what_lies_below_it():
    store = MemoryNodeStore()
    old = build(store, names(0, 5000))
    new = edit(store, old, {"02500": file(1)})
    known = {node_hash for node_hash, _ in walk_nodes(store, old)}
    before = store.reads
    fresh = list(walk_nodes(store, new, lambda node_hash: node_hash in known))
    assert len(fresh) == store.read_node(new).level + 1 == store.reads - before - 1


def test_leaves_name_the_records_and_single_chunks_that_their_files_keep_alive():
    store = MemoryNodeStore()
    record = b"r" * 32
    link = Entry(EntryKind.SYMLINK, b"l" * 32, 2, 5, 5, target="/a")
    root = build_tree(
        store, {("big",): file(9, record), ("none",): file(0), ("d", "one"): file(7), ("l",): link}
    )
    found = [
        content
        for _, node in walk_nodes(store, root)
        if isinstance(node, Leaf)
        for content in node.contents()
    ]
    assert found == [(record, True), (file(7).hash, False)]


def test_a_sound_directory_passes_the_check_at_any_size():
    store = MemoryNodeStore()
    for size in (0, 1, 16, 17, 64, 65, 1000, 6000):
        check_directory(store, build(store, names(0, size)))


def leaf_row(store, items):
    columns = leaf_columns(items)
    return inner_columns(items[-1][0], store.write_node(encode_columns(0, columns)), Leaf(columns).summary())


def parent_of(store, *rows):
    return store.write_node(encode_columns(1, join_columns(rows)))


def test_directories_whose_nodes_do_not_fit_together_are_found_out():
    store = MemoryNodeStore()
    sound = build(store, names(0, 300))
    top = store.read_node(sound)
    leaves = [store.read_node(child) for child in top.children()]
    rows = [
        inner_columns(leaf.names[-1], child, leaf.summary())
        for leaf, child in zip(leaves, top.children(), strict=True)
    ]
    assert parent_of(store, *rows) == sound
    check_directory(store, sound)
    key, child, _ = rows[1]
    lying = leaves[1].summary()._replace(size=1)
    overlapping = leaf_row(store, [*leaves[0].items(3), *leaves[1].items()][: len(leaves[0].names)])
    last = leaves[-1].items()
    damaged = [
        parent_of(store, rows[0]),
        parent_of(store, *rows[:1], inner_columns(key[0], child, lying), *rows[2:]),
        parent_of(store, *rows[:1], inner_columns(key[0] + "x", child, leaves[1].summary()), *rows[2:]),
        parent_of(store, leaf_row(store, leaves[0].items()[:-1]), *rows[1:]),
        parent_of(store, rows[0], overlapping),
        parent_of(store, *rows[:-1], leaf_row(store, last[:3]), leaf_row(store, last[3:])),
        parent_of(
            store, *rows[:-1], inner_columns("zz", empty_directory(store), Summary(1, 1, 0, 0, 0, 0, 0))
        ),
        parent_of(store, *rows[:-1], inner_columns("zz", sound, store.read_node(sound).summary())),
        store.write_node(encode_columns(0, leaf_columns(names(0, 64)))),
    ]
    for root in damaged:
        with pytest.raises(CorruptRecord):
            check_directory(store, root)


def test_a_directory_entry_that_lies_about_its_contents_is_found_out():
    store = MemoryNodeStore()
    inside = build(store, names(1, 4))
    right = Entry(EntryKind.DIRECTORY, inside, 6, 10, 20, totals=Totals(3, 0, 0, 6, 10, 20))
    wrong = Entry(EntryKind.DIRECTORY, inside, 7, 10, 20, totals=Totals(3, 0, 0, 7, 10, 20))
    check_directory(store, build(store, [("d", right)]))
    with pytest.raises(CorruptRecord):
        check_directory(store, build(store, [("d", wrong)]))


def test_nodes_that_name_children_of_the_wrong_level_end_in_an_error_and_not_in_a_loop():
    store = MemoryNodeStore()
    leaf = build(store, names(0, 10))
    node = decode_node(store.payloads[leaf])
    crooked = store.write_node(encode_columns(5, inner_columns("00009", leaf, node.summary())))
    for use in (check_directory, lambda s, r: edit(s, r, {"a": file(1)})):
        with pytest.raises(CorruptRecord):
            use(store, crooked)
