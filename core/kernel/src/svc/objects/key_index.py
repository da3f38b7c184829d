"""The key index: where in the log each object lies, on LMDB beside the log.

It can be made again from the log, and records how far it covers it. LMDB runs without syncs (``sync=False``):
a killed process leaves it whole, a power cut may not, and then it is made anew.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, NoReturn

import lmdb
import msgspec

from svc.errors import DatabaseClosed, InsufficientStorage
from svc.hashing import Hash
from svc.objects.commit_index import META, CommitIndex, IndexedCommit, put_commits, writing
from svc.objects.environment_notes import note_synced, note_written
from svc.objects.environments import (
    close_environment,
    destroy_environment,
    open_environment,
)

__all__ = [
    "CoverageMark",
    "IndexedCommit",
    "KeyIndex",
    "PackedPlace",
    "Place",
    "pack_place",
    "place_of",
    "unpack_place",
    "unpack_places",
]

INDEX_LIMIT = 1 << 40
_PLACE = struct.Struct("<QIIBBB")
_MARK = struct.Struct("<IQQ16s")
_FORMAT = 5
_MARK_KEY = b"mark"
_SWEEPS_KEY = b"sweeps"
_SWEEP_BYTES = 16
_DATABASES = (b"objects", b"commits", b"roots", b"meta", b"condemned", b"damaged")
_OBJECTS, _CONDEMNED, _DAMAGED = 0, 4, 5


class Place(NamedTuple):
    """Where an object lies, by its record's header in the log, and what that says; ``system`` is 0 or 1."""

    offset: int
    stored_length: int
    raw_length: int
    kind: int
    system: int
    codec: int


place_of = partial(tuple.__new__, Place)
"""Makes a place of its fields as a tuple, for half of what ``Place`` costs; checks nothing."""

PackedPlace = bytes
"""A place as the index keeps it. An import has thousands at once: bytes cost the collector nothing."""

pack_place = _PLACE.pack


def unpack_place(packed: PackedPlace) -> Place:
    """Returns the place that ``pack_place`` packed; ``lmdb.CorruptedError``: it is none."""
    try:
        return place_of(_PLACE.unpack(packed))
    except struct.error as error:
        raise lmdb.CorruptedError("A place in the key index is damaged.") from error


def unpack_places(packed: Iterable[PackedPlace]) -> Iterator[tuple[int, ...]]:
    """Yields the fields of many places."""
    return _PLACE.iter_unpack(b"".join(packed))


class CoverageMark(msgspec.Struct, frozen=True, gc=False):
    """How far the index covers the log: up to the offset ``covered``; ``sequence`` is its last commit."""

    covered: int
    sequence: int
    database_id: bytes


class KeyIndex(CommitIndex):
    """An open key index. One process-wide LMDB environment serves every opening of one directory.

    Reading never blocks. Writing is one short LMDB transaction; callers hold the database's commit lock, so
    writers never wait for each other here. Where the disk is full, or fails to write, all that writes raises
    ``InsufficientStorage`` and has written nothing.

    Raises ReadOnly, and lmdb.Error for files that are no index of this machine: ``destroy`` and rebuild them.
    """

    def __init__(self, directory: Path, read_only: bool = False) -> None:
        self._directory = directory
        self._shared = open_environment(directory, INDEX_LIMIT, _DATABASES, read_only)
        self._begin: Callable[..., lmdb.Transaction[bytes]] = self._shared.begin
        self._get: Callable[[int, bytes], bytes | None] = self._shared.get
        self._process = os.getpid()
        self._closed = False
        self._noted = False

    def find(self, hash: Hash) -> Place | None:
        """Returns where an object lies, condemned or damaged ones too, or None. Costs about 1.5 µs."""
        value = self._get(_OBJECTS, hash)
        if value is None:
            # One transaction for all: an object may be on its way from one to the other.
            with self._begin(_OBJECTS) as transaction:
                value = self._value_apart(transaction, hash)
        return None if value is None else unpack_place(value)

    def _value_apart(self, transaction: lmdb.Transaction[bytes], hash: Hash) -> bytes | None:
        value = transaction.get(hash)
        for apart in (_CONDEMNED, _DAMAGED):
            if value is None:
                value = transaction.get(hash, db=self._shared.databases[apart])
        return value

    def find_stored(self, hash: Hash) -> Place | None:
        """Returns the place of an object that is whole and stays, for all that is known; else None."""
        value = self._get(_OBJECTS, hash)
        return None if value is None else unpack_place(value)

    def contains(self, hash: Hash) -> bool:
        """Whether an object is stored and stays, not condemned or damaged: nobody need store it again."""
        return self._get(_OBJECTS, hash) is not None

    def known(self, hashes: Iterable[Hash]) -> set[Hash]:
        """Returns which of some objects are stored and stay; one transaction for all of them."""
        # The transaction ends when nothing refers to it: that costs less than a with statement.
        get = self._begin(_OBJECTS).get
        return {hash for hash in hashes if get(hash) is not None}

    def state(self) -> object:
        """Returns what equals a later answer only if no process wrote to the index in between."""
        transaction = self._begin()
        return self._shared.openings, transaction.id()

    def placed(self, hashes: Iterable[Hash]) -> set[Hash]:
        """Returns which of some objects ``find`` would find, damaged or not."""
        hashes = list(hashes)
        known = self.known(hashes)
        return known.union(hash for hash in hashes if hash not in known and self.find(hash) is not None)

    def damaged(self, limit: int) -> list[Hash]:
        """Returns up to ``limit`` objects that were found damaged and were not stored again since."""
        found: list[Hash] = []
        with self._begin(_DAMAGED) as transaction:
            for key in transaction.cursor().iternext(keys=True, values=False):
                found.append(key)
                if len(found) >= limit:
                    break
        return found

    def mark(self) -> CoverageMark | None:
        """Returns how far the index covers the log; None for a new index or one of another format."""
        value = self._get(META, _MARK_KEY)
        if value is None or len(value) != _MARK.size:
            return None
        format_number, covered, sequence, database_id = _MARK.unpack(value)
        if format_number != _FORMAT:
            return None
        return CoverageMark(covered, sequence, database_id)

    def object_count(self) -> int:
        """Number of objects in the index."""
        with self._begin(_OBJECTS) as transaction:
            return int(transaction.stat(self._shared.databases[_OBJECTS])["entries"])

    def objects(self) -> Iterator[tuple[Hash, Place]]:
        """Iterates over all objects in hash order, in bounded pieces so that no old page is pinned."""
        position = b""
        while True:
            with self._begin(_OBJECTS) as transaction:
                cursor = transaction.cursor()
                piece: list[tuple[Hash, Place]] = []
                if cursor.set_range(position):
                    for key, value in cursor:
                        piece.append((key, unpack_place(value)))
                        if len(piece) >= 4096:
                            break
            if not piece:
                return
            yield from piece
            position = piece[-1][0] + b"\0"

    def sharing_a_place(self) -> set[Hash]:
        """Returns the objects whose places other objects have too: one of them at most is right.

        Walks the whole index, a microsecond an object.
        """
        from pyroaring import BitMap64

        seen, shared = BitMap64(), BitMap64()
        for _, place in self.objects():
            (shared if place.offset in seen else seen).add(place.offset)
        return {hash for hash, place in self.objects() if place.offset in shared} if shared else set()

    def locate(self, hashes: Iterable[Hash]) -> list[tuple[Hash, Place]]:
        """Returns the places of those of some objects that ``find`` would find; one transaction for all."""
        found: list[tuple[Hash, Place]] = []
        with self._begin(_OBJECTS) as transaction:
            get = transaction.get
            for hash in hashes:
                value = get(hash)
                if value is None:
                    value = self._value_apart(transaction, hash)
                if value is not None:
                    found.append((hash, unpack_place(value)))
        return found

    def condemned_count(self) -> int:
        """Number of objects that are condemned."""
        with self._begin(_CONDEMNED) as transaction:
            return int(transaction.stat(self._shared.databases[_CONDEMNED])["entries"])

    def begin_count(self, kind: int) -> Callable[[], tuple[int, int]]:
        """Returns what counts the objects of a kind, and adds up their stored lengths, as they are now.

        It walks the whole index, a microsecond an object, and must be called soon: until then LMDB keeps all
        pages as they are. Others may write meanwhile.
        """
        transaction = self._begin(_OBJECTS)

        def count() -> tuple[int, int]:
            number = size = 0
            unpack = _PLACE.unpack
            with transaction:
                for value in transaction.cursor().iternext(keys=False, values=True):
                    place = unpack(value)
                    if place[3] == kind:
                        number += 1
                        size += place[1]
            return number, size

        return count

    def write(
        self,
        places: Iterable[tuple[Hash, PackedPlace]],
        commits: Iterable[IndexedCommit],
        mark: CoverageMark | None,
    ) -> int:
        """Adds objects and commits and moves the mark, in one transaction; returns how many objects are new.

        An object that is there keeps its first place, unless that was found damaged. A mark of None stays.
        """
        items = sorted(places, key=itemgetter(0))
        self._note_written()
        added = 0
        with writing(), self._begin(_OBJECTS, True) as transaction:
            damaged = self._shared.databases[_DAMAGED]
            if items:
                _, added = transaction.cursor().putmulti(items, overwrite=False)
                if transaction.stat(damaged)["entries"]:
                    for hash, _ in items:
                        transaction.delete(hash, db=damaged)
            put_commits(transaction, self._shared, commits)
            if mark is not None:
                transaction.put(_MARK_KEY, _pack_mark(mark), db=self._shared.databases[META])
        return added

    def _note_written(self) -> None:
        if self._noted:
            return
        try:
            note_written(self._directory)
        except FileNotFoundError:
            pass  # Somebody deleted the directory: nobody can open these files any more.
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                raise
            raise InsufficientStorage(
                "The disk is full or fails: the key index could not be written."
            ) from error
        self._noted = True

    def replace(self, places: Iterable[tuple[Hash, Place]]) -> None:
        """Lets objects lie elsewhere from now on."""
        self._note_written()
        with writing(), self._begin(_OBJECTS, True) as transaction:
            for hash, place in places:
                transaction.put(hash, _PLACE.pack(*place))

    def note_damaged(self, hashes: Iterable[Hash]) -> None:
        """Takes note of objects that cannot be read: they are stored again when somebody brings them.

        Until then their records are still looked for where they were. Needs no lock.
        """
        self._note_written()
        with writing(), self._begin(_OBJECTS, True) as transaction:
            damaged = self._shared.databases[_DAMAGED]
            for hash in hashes:
                value = transaction.get(hash)
                if value is not None:
                    transaction.put(hash, value, db=damaged)
                    transaction.delete(hash)

    def forget_damage(self, hashes: Iterable[Hash]) -> None:
        """Takes back that objects were found damaged: they can be read after all."""
        self._take_back(hashes, _DAMAGED)

    def remove(self, hashes: Iterable[Hash]) -> None:
        """Removes objects; used by repair and collection."""
        self._note_written()
        with writing(), self._begin(_OBJECTS, True) as transaction:
            for hash in hashes:
                transaction.delete(hash)

    def condemn(self, objects: Iterable[tuple[Hash, int]]) -> list[bool]:
        """Sets objects apart: they can be read, and nobody finds them who would store them.

        One that the index has at another offset stays. Says for each whether it is condemned now.
        """
        self._note_written()
        answers: list[bool] = []
        with writing(), self._begin(_OBJECTS, True) as transaction:
            condemned = self._shared.databases[_CONDEMNED]
            get, delete, put = transaction.get, transaction.delete, transaction.put
            for hash, offset in objects:
                value = get(hash)
                if value is not None and int.from_bytes(value[:8], "little") == offset:
                    delete(hash)
                    put(hash, value, db=condemned)
                    answers.append(True)
                else:
                    value = get(hash, db=condemned)
                    answers.append(value is not None and int.from_bytes(value[:8], "little") == offset)
        return answers

    def restore(self, hashes: Iterable[Hash]) -> None:
        """Takes condemned objects back, but for those that were stored anew meanwhile."""
        self._take_back(hashes, _CONDEMNED)

    def _take_back(self, hashes: Iterable[Hash], apart: int) -> None:
        self._note_written()
        with writing(), self._begin(_OBJECTS, True) as transaction:
            database = self._shared.databases[apart]
            for hash in hashes:
                value = transaction.pop(hash, db=database)
                if value is not None:
                    transaction.put(hash, value, overwrite=False)

    def restore_all(self, limit: int) -> bool:
        """Takes up to ``limit`` condemned objects back; returns whether none is left."""
        with self._begin(_CONDEMNED) as transaction:
            cursor = transaction.cursor()
            hashes = [key for key, _ in zip(cursor.iternext(values=False), range(limit), strict=False)]
        if hashes:
            self.restore(hashes)
        return len(hashes) < limit

    def forget_condemned(self, is_dead: Callable[[int], bool], sweep: bytes) -> None:
        """Forgets everything that is condemned: from here on nobody finds it, in no way.

        ``is_dead`` says whether a damaged object at an offset is not needed; ``sweep`` is the sweep's name.
        """
        self._note_written()
        with writing(), self._begin(_CONDEMNED, True) as transaction:
            transaction.drop(self._shared.databases[_CONDEMNED], delete=False)
            damaged = self._shared.databases[_DAMAGED]
            gone = [
                key
                for key, value in transaction.cursor(db=damaged)
                if is_dead(int.from_bytes(value[:8], "little"))
            ]
            for key in gone:
                transaction.delete(key, db=damaged)
            self._put_sweep(transaction, sweep)

    def note_sweep(self, sweep: bytes) -> None:
        """Notes that nothing is in the index that a sweep has destroyed: it was made anew since."""
        self._note_written()
        with writing(), self._begin(META, True) as transaction:
            self._put_sweep(transaction, sweep)

    def sweeps(self) -> tuple[bytes, ...]:
        """Returns the names of the last sweeps whose dead the index does not hold, the last one first.

        Two, since it forgets before the plan is committed, which may fail.
        """
        value = self._get(META, _SWEEPS_KEY) or b""
        return tuple(value[start : start + _SWEEP_BYTES] for start in range(0, len(value), _SWEEP_BYTES))

    def _put_sweep(self, transaction: lmdb.Transaction[bytes], sweep: bytes) -> None:
        meta = self._shared.databases[META]
        before = transaction.get(_SWEEPS_KEY, db=meta) or b""
        transaction.put(_SWEEPS_KEY, sweep + before[:_SWEEP_BYTES], db=meta)

    def leave_clean(self) -> None:
        """Writes the index to disk, so that it is believed after a restart of the machine; blocks.

        Nobody may write to it meanwhile. A later ``write`` takes that back first.
        """
        self._shared.sync()
        self._noted = False
        note_synced(self._directory)

    def close(self) -> None:
        """Closes this opening; the last one of the process closes the environment."""
        if not self._closed:
            self._closed = True
            self._begin = self._get = _refuse
            if os.getpid() == self._process:
                close_environment(self._shared)

    @staticmethod
    def destroy(directory: Path) -> None:
        """Deletes an index so that it is made anew; nobody may have it open."""
        destroy_environment(directory)


def _refuse(*_arguments: object) -> NoReturn:
    raise DatabaseClosed("The database is closed.")


def _pack_mark(mark: CoverageMark) -> bytes:
    return _MARK.pack(_FORMAT, mark.covered, mark.sequence, mark.database_id)
