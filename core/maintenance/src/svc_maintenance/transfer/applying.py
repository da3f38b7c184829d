"""Takes verified objects into a database, then names them in one commit.

Records are appended in an order where nothing stands before what it names. So if the process ends, no object
in the database names a missing one; objects that no commit names are garbage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from svc.database.committer import CommitRequest
from svc.database.operations import PutEntry, SetRef
from svc.database.references import HEAD_NAME
from svc.errors import RefusedFile
from svc.hashing import Hash, ObjectKind
from svc.log import encode_record
from svc.objects.key_index import Place, pack_place
from svc.objects.store import PendingObjects
from svc_maintenance.transfer.checking import OF_SYSTEM, OF_USER, CheckedObjects

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["TakenObjects", "name_objects", "take_objects"]

_APPEND_BYTES = 2 * 1024 * 1024
_PART_OBJECTS = 4096
_PAUSE_EVERY = 256
_PART_BYTES = 64 * 1024 * 1024
_OBJECTS = (ObjectKind.CHUNK, ObjectKind.FILE_RECORD, ObjectKind.NODE)


class TakenObjects(Struct, frozen=True):
    """What a database took."""

    new: int
    by_kind: dict[ObjectKind, int]


def take_objects(
    database: Database,
    checked: CheckedObjects,
    *,
    with_system: bool = False,
    pause: Callable[[], None] = lambda: None,
    progress: Callable[[int, int], None] | None = None,
) -> TakenObjects:
    """Appends verified objects to a database, those that it has not; nothing names them yet. Blocks.

    The objects were checked against this database, which is open for writing. ``with_system`` also takes what
    only the system tree needs. ``pause`` is called after every few megabytes, to let others run; ``progress``
    is told (bytes done, bytes in all). ``RefusedFile``: the objects were changed since they were checked.
    """
    wanted = OF_USER | (OF_SYSTEM if with_system else 0)
    return _Appending(database, checked, wanted, pause, progress).run()


def name_objects(
    database: Database,
    operations: Sequence[PutEntry | SetRef],
    *,
    actor: str | None = None,
    message: str | None = None,
) -> None:
    """Makes refs and entries of the system tree name objects that were taken, in one durable commit. Blocks.

    No ``operations``, no commit. ``PreconditionFailed``: a ref is not what was expected.
    """
    if operations:
        database.submit(CommitRequest(HEAD_NAME, [*operations], PendingObjects(), actor, message))


class _Appending:
    """Appends the records that the database does not have, and makes them part of it, part by part."""

    def __init__(
        self,
        database: Database,
        checked: CheckedObjects,
        wanted: int,
        pause: Callable[[], None],
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._database = database
        self._checked = checked
        self._wanted = wanted
        self._pause = pause
        self._progress = progress
        self._records: list[tuple[Hash, bytes, Place]] = []
        self._size = 0
        self._part = PendingObjects()
        self._part_bytes = 0

    def run(self) -> TakenObjects:
        source, index = self._checked.source, self._database.objects.index
        taken = dict.fromkeys(_OBJECTS, 0)
        new = ordinal = 0
        for record in source.records():
            if record.kind not in taken:
                continue
            if source.ordinal(record.hash) != ordinal:
                raise RefusedFile("The file was changed while it was imported.")
            ordinal += 1
            if not self._checked.marks[ordinal - 1] & self._wanted:
                continue
            taken[record.kind] += 1
            if index.contains(record.hash):
                continue
            new += 1
            assert record.payload is not None
            framed = encode_record(
                record.kind,
                record.hash,
                record.payload,
                codec=record.codec,
                raw_length=record.raw_length,
                time_ms=record.time_ms,
                system=record.system,
            )
            place = Place(
                0, record.stored_length, record.raw_length, record.kind, int(record.system), record.codec
            )
            self._records.append((record.hash, framed, place))
            self._size += len(framed)
            if new % _PAUSE_EVERY == 0:
                self._pause()
            if self._size >= _APPEND_BYTES or len(self._records) >= _PART_OBJECTS:
                self._append()
                if self._progress is not None:
                    self._progress(record.end, source.size)
        self._append()
        self._commit_part()
        return TakenObjects(new, taken)

    def _append(self) -> None:
        if not self._records:
            return
        offset = self._database.objects.log.append([framed for _, framed, _ in self._records])
        for hash, framed, place in self._records:
            self._part.placed[hash] = pack_place(offset, *place[1:])
            offset += len(framed)
        self._part_bytes += self._size
        self._records, self._size = [], 0
        self._pause()
        if self._part_bytes >= _PART_BYTES or len(self._part.placed) >= _PART_OBJECTS:
            self._commit_part()

    def _commit_part(self) -> None:
        if not self._part.placed:
            return
        # The bulk goes to disk here, outside of the lock, so that the commit's own sync is short.
        self._database._state.sync_ahead()
        self._database.submit(CommitRequest(HEAD_NAME, [], self._part))
        self._part, self._part_bytes = PendingObjects(), 0
