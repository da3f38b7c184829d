"""What reading keeps: bounded, never in the way of an error, and never another answer than without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.database import Database
from svc.errors import CorruptRecord, DatabaseClosed
from svc.hashing import HASH_SIZE
from svc.objects.read_cache import ReadCache
from svc.tree import Entry, EntryKind, Leaf, decode_node, empty_payload

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


def test_a_node_that_is_used_outlives_its_generation() -> None:
    cache = ReadCache(node_bytes=10)
    node = decode_node(empty_payload())
    assert isinstance(node, Leaf)
    cache.put_node(b"a", node, 6)
    cache.put_node(b"b", node, 6)
    assert cache.nodes == {}
    assert cache.old_node(b"a") is node
    assert cache.nodes == {b"a": node}
    cache.put_node(b"c", node, 11)
    assert cache.old_node(b"a") is node
    assert cache.old_node(b"b") is None


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
