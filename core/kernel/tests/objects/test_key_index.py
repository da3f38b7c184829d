"""The key index finds objects and remembers how far it covers the log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc.errors import DatabaseClosed, ReadOnly
from svc.objects.key_index import CoverageMark, IndexedCommit, KeyIndex, Place, pack_place

MARK = CoverageMark(128, 1, b"d" * 16)


def place(offset: int) -> Place:
    return Place(offset, 10, 20, 1, 0, 1)


def packed(offset: int) -> bytes:
    return pack_place(*place(offset))


def test_what_is_written_is_found_also_by_another_opening(tmp_path: Path) -> None:
    index = KeyIndex(tmp_path / "index")
    other = KeyIndex(tmp_path / "index")
    index.write([(b"a" * 32, packed(1)), (b"b" * 32, packed(2))], [IndexedCommit(1, 5, 6, b"r" * 32)], MARK)
    assert other.find(b"b" * 32) == place(2)
    assert other.find(b"c" * 32) is None
    assert other.commit_place(1) == (5, 6)
    assert other.first_commit_of_root(b"r" * 32) == 1
    assert other.mark() == MARK
    assert other.object_count() == 2
    index.close()
    assert dict(other.objects()) == {b"a" * 32: place(1), b"b" * 32: place(2)}
    other.close()


def test_whoever_writes_changes_the_state_of_the_index(tmp_path: Path) -> None:
    index, other = KeyIndex(tmp_path), KeyIndex(tmp_path)
    states = [index.state()]
    assert other.state() == states[0]
    index.write([(b"a" * 32, packed(1))], [], MARK)
    states.append(index.state())
    other.note_damaged([b"a" * 32])
    states.append(index.state())
    other.forget_damage([b"a" * 32])
    states.append(index.state())
    assert index.find(b"a" * 32) == place(1)
    assert index.state() == states[-1]
    assert len(set(states)) == len(states)
    index.close()
    with pytest.raises(DatabaseClosed):
        index.state()
    other.close()


def test_the_first_place_of_an_object_and_the_first_commit_of_a_root_stay(tmp_path: Path) -> None:
    index = KeyIndex(tmp_path)
    index.write([(b"a" * 32, packed(1))], [IndexedCommit(1, 5, 6, b"r" * 32)], MARK)
    index.write([(b"a" * 32, packed(9))], [IndexedCommit(2, 7, 6, b"r" * 32, (b"f" * 32,))], None)
    assert index.find(b"a" * 32) == place(1)
    assert index.first_commit_of_root(b"r" * 32) == 1
    assert index.first_commit_of_root(b"f" * 32) is None, "HEAD never had it"
    assert [index.last_commit_of_root(letter * 32) for letter in (b"r", b"f", b"x")] == [2, 2, None]
    assert index.commit_places(0, 10) == [(1, 5, 6), (2, 7, 6)]
    assert index.commit_places(1, 10) == [(2, 7, 6)]
    assert index.commit_places(0, 1) == [(1, 5, 6)]
    index.remove([b"a" * 32])
    assert not index.contains(b"a" * 32)
    index.close()


def test_commits_that_packs_hold_have_roots_and_no_place(tmp_path: Path) -> None:
    index = KeyIndex(tmp_path)
    assert not index.knows_packs()
    assert index.last_commit_place(9) is None
    index.write([], [IndexedCommit(number, number * 10, 6, b"r" * 32) for number in (3, 4, 6)], MARK)
    assert [index.last_commit_place(until) for until in (2, 3, 5, 6, 99)] == [
        None,
        (30, 6),
        (40, 6),
        (60, 6),
        (60, 6),
    ]
    index.forget_commits([3, 5])
    assert index.commit_places(0, 9) == [(4, 40, 6), (6, 60, 6)]
    assert index.first_commit_of_root(b"r" * 32) == 3
    # In whatever order they come.
    index.add_roots([(9, b"r" * 32, (b"f" * 32,)), (1, b"r" * 32, ()), (5, b"n" * 32, ())])
    assert (index.first_commit_of_root(b"r" * 32), index.last_commit_of_root(b"r" * 32)) == (1, 9)
    assert (index.first_commit_of_root(b"f" * 32), index.last_commit_of_root(b"f" * 32)) == (None, 9)
    assert index.first_commit_of_root(b"n" * 32) == 5
    index.note_packs()
    assert index.knows_packs()
    index.close()


def test_all_objects_are_walked_in_pieces(tmp_path: Path) -> None:
    index = KeyIndex(tmp_path)
    keys = [number.to_bytes(32, "big") for number in range(10_000)]
    index.write([(key, packed(number)) for number, key in enumerate(keys)], [], MARK)
    assert [key for key, _ in index.objects()] == keys
    index.close()


def test_a_directory_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ReadOnly):
        KeyIndex(tmp_path / "file" / "index")


def test_destroying_leaves_nothing(tmp_path: Path) -> None:
    index = KeyIndex(tmp_path)
    index.close()
    KeyIndex.destroy(tmp_path)
    assert os.listdir(tmp_path) == []
