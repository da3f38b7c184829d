"""Looks for what is dead: walks the log once, and compares each record with what is marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct, field

from svc.database.collection.marking import Marker
from svc.database.collection.plan import MAXIMUM_RUN, Plan
from svc.errors import CorruptRecord
from svc.hashing import HASH_SIZE, Hash, ObjectKind
from svc.log import FIRST, DamagedRegion, Log, ScannedRecord, record_size
from svc.objects.key_index import Place

__all__ = ["Garbage", "YoungChunks", "find_garbage"]

_OBJECTS = (ObjectKind.CHUNK, ObjectKind.FILE_RECORD, ObjectKind.NODE)
_NO_HASH = bytes(HASH_SIZE)
_BATCH = 2048


class YoungChunks(Struct, frozen=True):
    """Which chunks are kept that nobody marked, since a client may have uploaded them ahead.

    Those from ``after_ms`` on are young; before ``before_ms`` nobody knows who was told of a chunk.
    """

    after_ms: int
    before_ms: int

    def keeps(self, record: ScannedRecord) -> bool:
        """Whether a dead record is kept."""
        return (
            self.after_ms <= record.time_ms < self.before_ms
            and record.kind is ObjectKind.CHUNK
            and not record.system
        )


class Garbage(Struct):
    """What is dead."""

    plan: Plan = field(default_factory=Plan)
    entries: int = 0
    size: int = 0
    user_entries: int = 0
    commits: int = 0

    def take_out(self, revived: list[tuple[Hash, Place]]) -> None:
        """Takes out what came to life again."""
        if not revived:
            return
        records = [(place.offset, place.offset + record_size(place.stored_length)) for _, place in revived]
        self.plan.take_out(records)
        self.entries -= len(records)
        self.size -= sum(end - begin for begin, end in records)
        self.user_entries -= sum(1 for _, place in revived if not place.system)


Batch = list[tuple[Hash, int]]
"""Hashes and offsets of dead records."""


def find_garbage(
    log: Log,
    end: int,
    marker: Marker,
    young: YoungChunks,
    is_packed: Callable[[ScannedRecord], bool],
    progress: Callable[[int], None],
) -> Iterator[tuple[Garbage, Batch]]:
    """Walks the log up to an offset; yields, again and again, what was found dead so far and what is new.

    What is dead is noted in ``marker.dead``; what is kept for its youth in ``marker.live``. Damaged regions,
    commits that no pack holds, clean-end marks and records of other kinds stay. The runs are complete when it
    has ended. ``CorruptRecord``: by a damaged key index something looks dead that may be needed.
    """
    garbage = Garbage()
    dead = marker.dead
    batch: Batch = []
    positions: list[int] = []
    begin = reached = -1
    is_run = False  # whether anything between ``begin`` and ``reached`` is dead, and no void from before
    for number, record in enumerate(log.scan_tolerant(FIRST, end)):
        if number % 8192 == 8191:
            progress(record.end)
        is_dead = False
        if isinstance(record, DamagedRegion):
            is_part = False
        elif record.kind in _OBJECTS:
            is_part = is_dead = _is_dead(record, marker, young)
        elif record.kind is ObjectKind.COMMIT:
            is_part = is_dead = is_packed(record)
        else:
            is_part = record.kind is ObjectKind.VOID and record.hash == _NO_HASH
        if not is_part or (begin >= 0 and record.end - begin > MAXIMUM_RUN):
            if is_run:
                garbage.plan.add(begin, reached)
            begin, is_run = -1, False
        if is_part:
            if begin < 0:
                begin = record.offset
            reached = record.end
        if is_dead and not isinstance(record, DamagedRegion):
            is_run = True
            garbage.entries += 1
            garbage.size += record.end - record.offset
            garbage.user_entries += not record.system
            garbage.commits += record.kind is ObjectKind.COMMIT
            positions.append(record.offset >> 3)
            batch.append((record.hash, record.offset))
            if len(batch) >= _BATCH:
                dead.update(positions)
                yield garbage, batch
                batch, positions = [], []
    if is_run:
        garbage.plan.add(begin, reached)
    dead.update(positions)
    yield garbage, batch


def _is_dead(record: ScannedRecord, marker: Marker, young: YoungChunks) -> bool:
    position = record.offset >> 3
    if position in marker.live:
        return False
    if young.keeps(record):
        marker.live.add(position)
        return False
    if not marker.needs(record.hash, record.offset):
        return True
    raise CorruptRecord(
        "The key index is damaged: it does not lead to an object that is in the log. Nothing is collected. "
        "'svc verify --repair' makes the index anew.",
        hash=record.hash.hex(),
        offset=record.offset,
    )
