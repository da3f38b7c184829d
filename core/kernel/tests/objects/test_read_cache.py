"""What reading keeps: bounded, never in the way of an error, and never another answer than without it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from svc.database import Database
from svc.errors import CorruptRecord, DatabaseClosed
from svc.hashing import HASH_SIZE
from svc.objects.read_cache import ReadCache
from svc.tree import Entry, EntryKind, Node, decode_node, empty_payload
from svc.tree.codec import encode_columns, leaf_columns

ROOT = b"r" * HASH_SIZE
ENTRY = Entry(EntryKind.FILE, b"h" * HASH_SIZE, 1, 2, 3)


def test_too_many_names_are_forgotten_and_a_directory_counts_as_one() -> None:
    cache = ReadCache(names=4)
    for name in "abc":
        cache.put_entry(ROOT, name, ENTRY)
    assert cache.entries == {ROOT: {"a": ENTRY, "b": ENTRY, "c": ENTRY}}
    cache.put_entry(ROOT, "d", None)
    assert cache.entries == {ROOT: {"d": None}}


def test_a_missing_name_that_no_path_can_hold_is_not_kept() -> None:
    cache = ReadCache()
    cache.put_entry(ROOT, "x" * 256, None)
    assert cache.entries == {}


def test_too_many_offsets_are_forgotten() -> None:
    cache = ReadCache(offsets=2)
    for number in range(3):
        cache.put_offset(bytes([number]) * HASH_SIZE, number)
    assert cache.offsets == {b"\2" * HASH_SIZE: 2}


EMPTY = decode_node(empty_payload())


def test_a_node_that_is_used_outlives_its_generation() -> None:
    cache = ReadCache(node_bytes=8 * 1024)
    for name in (b"a", b"b", b"c"):
        cache.put_node(name, EMPTY)
    assert cache.nodes == {}
    assert cache.old_node(b"a") is EMPTY
    assert cache.nodes == {b"a": EMPTY}
    for name in (b"d", b"e", b"f"):
        cache.put_node(name, EMPTY)
    assert cache.old_node(b"a") is EMPTY
    assert cache.old_node(b"b") is None


def test_nodes_that_are_all_used_again_and_again_take_no_more_than_their_room() -> None:
    cache = ReadCache(node_bytes=64 * 1024)
    hashes = [number.to_bytes(HASH_SIZE, "big") for number in range(1000)]
    for count, hash in enumerate(hashes):
        cache.put_node(hash, EMPTY)
        kept = [known for known in hashes[:count] if known in cache.nodes or cache.old_node(known)]
        assert len(kept) <= 64
    assert kept[-1] == hashes[-2]
    assert len(kept) > 32


def test_many_nodes_at_once_take_no_more_than_their_room() -> None:
    cache = ReadCache(node_bytes=64 * 1024)
    hashes = [number.to_bytes(HASH_SIZE, "big") for number in range(1000)]
    cache.put_nodes(dict.fromkeys(hashes[:8], EMPTY))
    assert list(cache.nodes) == hashes[:8]
    cache.put_nodes(dict.fromkeys(hashes, EMPTY))
    assert sum(cache.old_node(hash) is not None or hash in cache.nodes for hash in hashes) <= 64


def test_a_node_that_comes_while_a_generation_ends_does_not_end_the_next_one() -> None:
    cache = ReadCache(node_bytes=8 * 1024)

    class Raced(dict[bytes, Node]):
        """As if another thread had its turn after each clearing."""

        def clear(self) -> None:
            super().clear()
            cache.put_node(b"other", EMPTY)

    cache.nodes = Raced()
    for name in (b"a", b"b", b"c"):
        cache.put_node(name, EMPTY)
    assert [cache.old_node(name) for name in (b"a", b"b", b"c")] == [EMPTY] * 3


@pytest.mark.parametrize(("entries", "name"), [(1, "{}"), (8, "{}"), (64, "{}.txt"), (64, "{}" + "x" * 200)])
def test_full_it_takes_about_what_it_says(entries: int, name: str) -> None:
    room = 512 * 1024
    items = [(name.format(number), ENTRY) for number in range(1000, 1000 + entries)]
    payload = encode_columns(0, leaf_columns(items))
    cache = ReadCache()
    cache.limit(room)
    tracemalloc.start()
    try:
        for number in range(1200):
            for known in range(max(0, number - 300), number):
                cache.old_node(_hash(known))
            cache.put_node(_hash(number), decode_node(payload))
            entry = Entry(EntryKind.FILE, _hash(number), number, 10**12 + number, 10**12 - number)
            cache.put_entry(_hash(number // 4), name.format(number), entry)
            cache.put_offset(_hash(number), 10**12 + number)
            if number == 1020:
                taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert room // 2 < taken < room * 1.25


def _hash(number: int) -> bytes:
    return number.to_bytes(HASH_SIZE, "big")


@pytest.fixture
def database(tmp_path: Path) -> Database:
    database = Database(tmp_path / "cached.svcdb")
    with database.transaction() as transaction:
        transaction.put(("a", "b", "file"), b"content")
        transaction.put(("other",), b"another")
    return database


def test_answers_are_the_same_from_the_cache(database: Database) -> None:
    missing = [("a", "b", "none"), ("none", "file"), ("other", "below"), ("x" * 300,)]
    paths = [(), ("a",), ("a", "b", "file"), *missing]
    with database:
        version = database.at()
        first = [version.get(path) for path in paths]
        assert [version.get(path) for path in paths] == first
        assert [entry is not None for entry in first] == [True, True, True, False, False, False, False]


def test_a_kept_answer_is_of_its_version_alone(database: Database) -> None:
    with database:
        before = database.at()
        assert before.get(("new",)) is None
        with database.transaction() as transaction:
            transaction.put(("new",), b"now")
            transaction.delete(("other",))
        assert database.at().get(("new",)) is not None
        assert database.at().get(("other",)) is None
        assert before.get(("new",)) is None
        assert before.get(("other",)) is not None


def test_a_content_that_lies_elsewhere_by_now_is_found_again(database: Database) -> None:
    with database:
        version, cache = database.at(), database.objects.cache
        entry = version.get(("other",))
        assert entry is not None
        assert version.read_all(entry) == b"another"
        right = cache.offsets[entry.hash]
        cache.offsets[entry.hash] = right + 8
        assert version.read_all(entry) == b"another"
        assert cache.offsets == {entry.hash: right}


def test_a_whole_record_of_another_content_is_never_taken_for_it(database: Database) -> None:
    with database:
        version, cache = database.at(), database.objects.cache
        mine, other = version.get(("other",)), version.get(("a", "b", "file"))
        assert mine is not None
        assert other is not None
        assert (version.read_all(mine), version.read_all(other)) == (b"another", b"content")
        right = dict(cache.offsets)
        cache.offsets[mine.hash] = right[other.hash]  # as long, and whole
        assert version.read_all(mine) == b"another"
        assert cache.offsets == right


def test_damage_and_a_wrong_size_show_behind_a_kept_offset_too(database: Database) -> None:
    with database:
        version = database.at()
        entry = version.get(("other",))
        assert entry is not None
        assert version.read_all(entry) == b"another"
        wrong = Entry(EntryKind.FILE, entry.hash, entry.size - 1, 0, 0)
        with pytest.raises(CorruptRecord, match="another size than its file states"):
            version.read_all(wrong)
        assert version.read_all(entry) == b"another"
        content = database.path.read_bytes()
        at = content.index(b"another")
        with database.path.open("r+b") as file:
            file.seek(at)
            file.write(b"A")
        with pytest.raises(CorruptRecord, match="fails its checksum") as caught:
            version.read_all(entry)
        assert caught.value.details["hash"] == entry.hash.hex()


def test_a_closed_database_reads_nothing_from_kept_offsets(database: Database) -> None:
    version = database.at()
    entry = version.get(("other",))
    assert entry is not None
    assert version.read_all(entry) == b"another"
    database.close()
    with pytest.raises(DatabaseClosed):
        version.read_all(entry)


def test_too_many_differences_are_forgotten() -> None:
    cache = ReadCache()
    for number in range(5000):
        cache.put_differences(ROOT, number.to_bytes(HASH_SIZE, "big"), [("a", None, ENTRY)])
    assert 0 < len(cache.differences) < 4096
    assert (ROOT, (4999).to_bytes(HASH_SIZE, "big")) in cache.differences
    cache.clear()
    assert not cache.differences
