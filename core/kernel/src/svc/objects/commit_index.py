"""The part of the key index that knows commits: where in the log each lies, and which had which root."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

import lmdb

from svc.errors import InsufficientStorage, InternalError
from svc.hashing import Hash
from svc.objects.environments import SharedEnvironment, is_full

__all__ = ["COMMITS", "META", "ROOTS", "CommitIndex", "IndexedCommit", "put_commits", "writing"]

COMMITS, ROOTS, META = 1, 2, 3
"""Numbers of the databases in the index's environment."""

_COMMIT = struct.Struct("<QI")
_SEQUENCE = struct.Struct(">Q")
_FIRST_AND_LAST = struct.Struct(">QQ")
_PACKS_KEY = b"packs"
_DAMAGED_KEY = b"damaged-commits"
_MOST_DAMAGED = 1_000
_OF_REF = b"\x00"
"""Stands before a root that was not HEAD's but that of a named ref."""


class IndexedCommit(NamedTuple):
    """What the index keeps of a commit: the offset of its record's header, and the length of its payload.

    ``root`` is HEAD's root after it; ``ref_roots`` are those to which it brought trees other than HEAD's.
    """

    sequence: int
    offset: int
    stored_length: int
    root: Hash
    ref_roots: tuple[Hash, ...] = ()


class CommitIndex:
    """A part of ``KeyIndex``. A commit that a pack holds has roots here, and no place."""

    _shared: SharedEnvironment
    _begin: Callable[..., lmdb.Transaction[bytes]]
    _get: Callable[[int, bytes], bytes | None]
    if TYPE_CHECKING:

        def _note_written(self) -> None: ...

    def commit_place(self, sequence: int) -> tuple[int, int] | None:
        """Returns (offset, stored length) of a commit's record, or None."""
        value = self._get(COMMITS, _SEQUENCE.pack(sequence))
        return None if value is None else _place_of(value)

    def commit_places(self, after: int, limit: int) -> list[tuple[int, int, int]]:
        """Returns up to ``limit`` (sequence, offset, stored length) of commits after a sequence number."""
        found: list[tuple[int, int, int]] = []
        with self._begin(COMMITS) as transaction:
            cursor = transaction.cursor()
            if cursor.set_range(_SEQUENCE.pack(after + 1)):
                for key, value in cursor:
                    found.append((_unpacked(_SEQUENCE, key)[0], *_place_of(value)))
                    if len(found) >= limit:
                        break
        return found

    def last_commit_place(self, until: int) -> tuple[int, int] | None:
        """Returns (offset, stored length) of the last commit up to a number that has a place, or None."""
        with self._begin(COMMITS) as transaction:
            cursor = transaction.cursor()
            found = cursor.set_range(_SEQUENCE.pack(until + 1))
            if not (cursor.prev() if found else cursor.last()):
                return None
            return _place_of(cursor.value())

    def forget_commits(self, sequences: Iterable[int]) -> None:
        """Forgets where commits lie in the log: packs hold them. Their roots stay known."""
        self._note_written()
        with writing(), self._begin(COMMITS, True) as transaction:
            for sequence in sequences:
                transaction.delete(_SEQUENCE.pack(sequence))

    def add_roots(self, commits: Iterable[tuple[int, Hash, tuple[Hash, ...]]]) -> None:
        """Takes in which roots commits had, in whatever order they come."""
        self._note_written()
        with writing(), self._begin(ROOTS, True) as transaction:
            for sequence, root, ref_roots in commits:
                for known in (root, *[_OF_REF + ref_root for ref_root in ref_roots]):
                    value = transaction.get(known)
                    first, last = (sequence, sequence) if value is None else _unpacked(_FIRST_AND_LAST, value)
                    transaction.put(known, _FIRST_AND_LAST.pack(min(first, sequence), max(last, sequence)))

    def knows_packs(self) -> bool:
        """Whether the roots of the commits were taken in that packs held when the index was made."""
        return self._get(META, _PACKS_KEY) is not None

    def note_packs(self) -> None:
        """Notes that they were."""
        self._note_written()
        with writing(), self._begin(META, True) as transaction:
            transaction.put(_PACKS_KEY, b"\x01")

    def damaged_commits(self) -> list[int]:
        """Returns the numbers of the first commits whose records the last verification could not read."""
        value = self._get(META, _DAMAGED_KEY)
        return [] if value is None else [number for (number,) in _SEQUENCE.iter_unpack(value)]

    def note_damaged_commits(self, sequences: Iterable[int]) -> None:
        """Notes the commits whose records can't be read, in place of those before; of very many the first."""
        noted = sorted(sequences)[:_MOST_DAMAGED]
        if noted == self.damaged_commits():
            return
        self._note_written()
        with writing(), self._begin(META, True) as transaction:
            if noted:
                transaction.put(_DAMAGED_KEY, b"".join(map(_SEQUENCE.pack, noted)))
            else:
                transaction.delete(_DAMAGED_KEY)

    def first_commit_of_root(self, root: Hash) -> int | None:
        """Returns the sequence number of the first commit that had this user root, or None."""
        value = self._get(ROOTS, root)
        return None if value is None else _unpacked(_FIRST_AND_LAST, value)[0]

    def last_commit_of_root(self, root: Hash) -> int | None:
        """Returns the number of the last commit that left HEAD, or a named ref that it moved, at a root."""
        found = [self._get(ROOTS, root), self._get(ROOTS, _OF_REF + root)]
        last = [_unpacked(_FIRST_AND_LAST, value)[1] for value in found if value is not None]
        return max(last) if last else None


def _unpacked(form: struct.Struct, packed: bytes) -> tuple[int, ...]:
    try:
        return form.unpack(packed)
    except struct.error as error:
        raise lmdb.CorruptedError("What the key index knows of a commit is damaged.") from error


def _place_of(value: bytes) -> tuple[int, int]:
    offset, stored_length = _unpacked(_COMMIT, value)
    return offset, stored_length


class writing:  # noqa: N801 - reads as a statement; a generator would cost each commit four calls
    """Says in our own errors what keeps LMDB from writing."""

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, lmdb.MapFullError):
            raise InternalError("The key index has reached its largest size.") from error
        if isinstance(error, lmdb.Error) and is_full(error):
            raise InsufficientStorage(
                "The disk is full or fails: the key index could not be written."
            ) from error


def put_commits(
    transaction: lmdb.Transaction[bytes], shared: SharedEnvironment, commits: Iterable[IndexedCommit]
) -> None:
    """Adds commits that follow each other, within a transaction of the index."""
    by_sequence, roots = shared.databases[COMMITS], shared.databases[ROOTS]
    for sequence, offset, length, root, ref_roots in commits:
        key = _SEQUENCE.pack(sequence)
        transaction.put(key, _COMMIT.pack(offset, length), db=by_sequence)
        for known in (root, *[_OF_REF + ref_root for ref_root in ref_roots]):
            first = transaction.get(known, db=roots)
            transaction.put(known, (key if first is None else first[:8]) + key, db=roots)
