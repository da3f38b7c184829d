"""Brings the key index up to the log: after a kill, after a power cut, or from nothing.

Only whole commits count: records behind the last belong to a later one, which states where they begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from svc.database.commit import Commit
from svc.errors import CorruptRecord, SvcError
from svc.hashing import HASH_SIZE, Hash, ObjectKind
from svc.log import FIRST, DamagedRegion, Log, ScannedRecord
from svc.objects.codecs import decompress
from svc.objects.file_record import FileRecord
from svc.objects.key_index import CoverageMark, IndexedCommit, KeyIndex, Place, pack_place
from svc.tree import Leaf, decode_node

__all__ = ["NO_HASH", "CaughtUp", "CommitChain", "Progress", "catch_up"]

Progress = Callable[[int, int], None]
"""Called with (bytes scanned, bytes in all)."""

_BATCH = 200_000
NO_HASH = bytes(HASH_SIZE)
"""In place of an identity in a void, which is no clean-end mark then."""


class CaughtUp(Struct, frozen=True):
    """How far the index came: the last commit found and the offset behind it; else None and the start."""

    commit: Commit | None
    end: int
    records: int


def catch_up(
    log: Log,
    index: KeyIndex,
    start: int,
    sequence: int,
    progress: Progress | None = None,
) -> CaughtUp:
    """Indexes every commit behind ``start``, past what rot has made unreadable.

    The caller holds the commit lock. ``CorruptRecord``: a commit is missing where nothing is damaged.
    """
    start = max(start, FIRST)
    places: list[tuple[Hash, Place]] = []
    commits: list[IndexedCommit] = []
    last: Commit | None = None
    chain = CommitChain(log, sequence, _hash_of(log, index, sequence))
    end = start
    committed = 0
    ahead: list[int] = []
    records = 0
    for record in log.scan_tolerant(start):
        records += 1
        if isinstance(record, DamagedRegion):
            chain.pass_over()
            continue
        if record.kind == ObjectKind.COMMIT:
            read = chain.take(record)
            if read is None:
                continue
            last = read
            sequence = last.sequence
            end = record.end
            commits.append(
                IndexedCommit(sequence, record.offset, record.stored_length, last.root, last.ref_roots())
            )
            if last.first_offset and last.first_offset < start:
                ahead.append(last.first_offset)
        if _is_object(record):
            places.append(_located(record))
        elif record.hash == NO_HASH:
            # A repair may have put a commit out of the way that it could not save.
            chain.pass_over()
        if record.kind == ObjectKind.COMMIT:
            committed = len(places)
            if committed >= _BATCH:
                _add_named(log, ahead, start, places)
                _flush(log, index, places, commits, end, sequence)
        if progress is not None and records % 4096 == 0:
            progress(record.end, log.tail)
    if commits or index.mark() is None:
        del places[committed:]
        _add_named(log, ahead, start, places)
        _flush(log, index, places, commits, end, sequence)
    if progress is not None:
        progress(log.tail, log.tail)
    return CaughtUp(last, end, records)


def _flush(
    log: Log,
    index: KeyIndex,
    places: list[tuple[Hash, Place]],
    commits: list[IndexedCommit],
    end: int,
    sequence: int,
) -> None:
    packed = [(hash, pack_place(*place)) for hash, place in places]
    added = index.write(packed, commits, CoverageMark(end, sequence, log.database_id))
    if added < len(places):
        _prefer_whole(log, index, places)
    places.clear()
    commits.clear()


def _prefer_whole(log: Log, index: KeyIndex, places: list[tuple[Hash, Place]]) -> None:
    """Takes an object's second copy in the log if the first is damaged: it was stored again."""
    for hash, place in places:
        known = index.find(hash)
        if known is None or known.offset == place.offset or _is_whole(log, hash, known):
            continue
        if _is_whole(log, hash, place):
            index.replace([(hash, place)])


def _is_whole(log: Log, hash: Hash, place: Place) -> bool:
    try:
        log.read_payload(place.offset, place.stored_length, hash)
    except CorruptRecord:
        return False
    return True


def _hash_of(log: Log, index: KeyIndex, sequence: int) -> Hash | None:
    place = index.commit_place(sequence)
    return log.read(*place).hash if place is not None else None


class CommitChain:
    """The commits of a log as they follow each other, past what rot has made unreadable."""

    def __init__(self, log: Log, sequence: int, parent: Hash | None) -> None:
        self.sequence = sequence
        self.parent = parent
        self._log = log
        self._durable_end = 0
        self._damaged = False

    def pass_over(self) -> None:
        """Takes note of a damaged region, or of a void: commits may be missing behind it."""
        self._damaged = True

    def take(self, record: ScannedRecord) -> Commit | None:
        """Returns a commit that follows the last one, or None for one that rot has made unreadable.

        Behind a damaged region bytes of a chunk may look like a commit, of another database perhaps: what
        claims to be the next commit must name its parent, and what cannot follow is passed over.
        """
        try:
            commit = Commit.decode(self._log.read_payload(record.offset, record.stored_length))
        except CorruptRecord:
            self._damaged = True
            return None
        if not (commit.sequence == self.sequence + 1 and commit.parent == self.parent):
            if not self._damaged:
                raise CorruptRecord(
                    f"The log holds commit {commit.sequence} where commit {self.sequence + 1} belongs: "
                    "a part of it is missing.",
                    offset=record.offset,
                )
            # Every commit states how far the log was durable, and none less than the one before it.
            may_follow = self._durable_end <= commit.durable_end <= record.offset
            if commit.sequence <= self.sequence + 1 or not may_follow:
                return None
        self.sequence, self.parent, self._durable_end = commit.sequence, record.hash, commit.durable_end
        return commit


def _add_named(log: Log, ahead: list[int], start: int, places: list[tuple[Hash, Place]]) -> None:
    if ahead:
        places += _named_before(log, min(ahead), start, places)
        ahead.clear()


def _named_before(
    log: Log, begin: int, end: int, places: list[tuple[Hash, Place]]
) -> list[tuple[Hash, Place]]:
    """Returns the records between two offsets, appended ahead, that the records of new commits name.

    Others may be ones that a collection has unindexed and will destroy, or of an import that has died.
    """
    found = {
        record.hash: _located(record)
        for record in log.scan_tolerant(begin, end)
        if not isinstance(record, DamagedRegion) and _is_object(record)
    }
    named: list[tuple[Hash, Place]] = []
    pending = list(places)
    while pending:
        for hash in _names_of(log, *pending.pop()):
            one = found.pop(hash, None)
            if one is not None:
                named.append(one)
                pending.append(one)
    return named


def _names_of(log: Log, hash: Hash, place: Place) -> Iterable[Hash]:
    if place.kind not in (ObjectKind.NODE, ObjectKind.FILE_RECORD):
        return ()
    try:
        stored = log.read_payload(place.offset, place.stored_length, hash)
        payload = decompress(place.codec, stored, place.raw_length)
        if place.kind == ObjectKind.FILE_RECORD:
            return FileRecord.decode(payload).chunks
        node = decode_node(payload)
    except SvcError:
        return ()
    return [name for name, _ in node.contents()] if isinstance(node, Leaf) else ()


def _is_object(record: ScannedRecord) -> bool:
    return record.kind != ObjectKind.VOID


def _located(record: ScannedRecord) -> tuple[Hash, Place]:
    place = Place(
        record.offset, record.stored_length, record.raw_length, record.kind, int(record.system), record.codec
    )
    return record.hash, place
