"""The format page says what the code does: its vectors are built here, its tables compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from svc.hashing import ObjectKind, hash_object
from svc.tree import (
    NO_TOTALS,
    Entry,
    EntryKind,
    build,
    check_directory,
    check_node,
    empty_directory,
    walk_nodes,
)
from svc_testing.memory_nodes import MemoryNodeStore

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "format" / "tree.md").read_text(encoding="utf-8")
VECTORS = {
    name: (lines[0], "".join(lines[1:]))
    for name, body in re.findall(r"```text\nvector ([a-z-]+)\n(.*?)```", PAGE, re.DOTALL)
    if (lines := body.split())
}


def content(data: bytes) -> bytes:
    return hash_object(ObjectKind.CHUNK, data)


def kinds(store):
    at_ms = 1750000000000
    bare = Entry(EntryKind.DIRECTORY, empty_directory(store), 0, at_ms, at_ms, totals=NO_TOTALS)
    hello = Entry(EntryKind.FILE, content(b"hello\n"), 6, at_ms + 1, at_ms + 2, "text/plain")
    target = "/hello.txt"
    latest = Entry(EntryKind.SYMLINK, content(target.encode()), 10, at_ms + 3, at_ms + 3, target=target)
    pattern, record = bytes(range(32)), bytes(range(32, 64))
    movie = Entry(EntryKind.FILE, pattern, 1 << 30, at_ms + 4, at_ms + 5, "video/mp4", record=record)
    return build(store, [("docs", bare), ("hello.txt", hello), ("latest", latest), ("movie.mp4", movie)])


def many(store, count, width):
    files = [(f"{n:0{width}d}", Entry(EntryKind.FILE, content(b""), 0, 0, n)) for n in range(count)]
    return build(store, files)


@pytest.mark.parametrize(
    ("name", "make", "system"),
    [
        ("empty", empty_directory, False),
        ("empty-system", empty_directory, True),
        ("kinds", kinds, False),
        ("hundred", lambda store: many(store, 100, 3), False),
        ("ten-thousand", lambda store: many(store, 10_000, 5), False),
    ],
)
def test_a_vector_of_the_page_is_what_the_code_makes(name, make, system):
    store = MemoryNodeStore(system=system)
    root = make(store)
    printed_hash, printed_payload = VECTORS[name]
    assert root.hex() == printed_hash
    check_directory(store, root)
    if printed_payload:
        assert store.payloads[root].hex() == printed_payload
        check_node(bytes.fromhex(printed_payload))


def test_all_vectors_of_the_page_are_checked():
    assert set(VECTORS) == {"empty", "empty-system", "kinds", "hundred", "ten-thousand"}


def test_what_the_page_says_of_the_shapes_of_the_vectors_is_so():
    store = MemoryNodeStore()
    hundred = store.read_node(many(store, 100, 3))
    assert [len(store.read_node(child).names) for child in hundred.children()] == [45, 31, 24]
    nodes = [node for _, node in walk_nodes(store, many(store, 10_000, 5))]
    assert (len(nodes), nodes[0].level) == (344, 2)
