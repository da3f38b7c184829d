"""Verifies little by little: one stretch of the log at a time, then the damaged paths.

Meanwhile others write and collections destroy, so apparent damage is checked again before it counts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from svc.database.lost import Lost
from svc.errors import CorruptRecord, NotFound, UnsupportedFormat
from svc.log import FIRST, record_size
from svc_maintenance.verification.boundaries import boundary_before
from svc_maintenance.verification.report import VerifyReport
from svc_maintenance.verification.stretches import DamagedObject, Stretch, check_stretch
from svc_maintenance.verification.verification import Pace, VerifyProgress, verify_versions

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["ScrubStep", "is_whole_again", "name_damage", "scrub"]

_LOOK_AGAIN_SECONDS = 0.2


class ScrubStep(msgspec.Struct, frozen=True):
    """What was found in a stretch of the log.

    Attributes:
        start: where it began.
        end: where the next one begins.
        limit: where the log ends for now; when ``end`` reaches it everything was checked.
        damaged: records whose content is damaged: where each begins and ends, what it holds, of which kind.
        regions: (begin, end) of bytes in which no record can be read, or which are not what they should be.
    """

    start: int
    end: int
    limit: int
    damaged: list[DamagedObject]
    regions: list[tuple[int, int]]


def scrub(database: Database, position: int, most_bytes: int) -> ScrubStep:
    """Checks a stretch of the log, and takes note of the damaged objects in it; blocks.

    Args:
        database: the database, open for writing.
        position: where to begin: 0, or the ``end`` of an earlier step, of this process or another.
        most_bytes: how much to check, about.
    """
    limit = database.head().commit_end
    start = boundary_before(database, position)
    stretch = _checked(database, start, min(max(position, start) + most_bytes, limit), limit)
    if not stretch.is_whole:
        # Somebody may just have written or destroyed there.
        time.sleep(_LOOK_AGAIN_SECONDS)
        start = boundary_before(database, start)
        stretch = _checked(database, start, max(start, min(stretch.end, limit)), limit)
    damaged = [one for one in stretch.damaged if one.offset >= FIRST and _is_known(database, one)]
    if damaged:
        database.objects.index.note_damaged([one.hash for one in damaged])
    regions = [*stretch.regions, *((offset, offset) for offset in stretch.padded)]
    return ScrubStep(start, max(stretch.end, start), limit, damaged, regions)


def name_damage(
    database: Database,
    damaged: Sequence[DamagedObject],
    regions: Sequence[tuple[int, int]],
    progress: VerifyProgress | None = None,
    *,
    most_paths: int = 1000,
    pace: Pace | None = None,
) -> VerifyReport:
    """Walks all versions, and names what is damaged or missing; blocks.

    Args:
        database: the database.
        damaged: what ``scrub`` found; what is whole by now, or gone, is passed over.
        regions: likewise.
        progress: called now and then with ("versions", commits, all).
        most_paths: how many paths are named.
        pace: called with the bytes of each record that the walk reads; may wait, so that it takes its time.
            Not called while a collection waits for the walk to end.
    """
    log = database.objects.log
    still = [
        one
        for one in damaged
        if check_stretch(log.storage.read, one.offset, one.end, one.end, log.database_id).damaged
    ]
    broken = [
        region
        for region in regions
        if not _checked(
            database,
            boundary_before(database, region[0]),
            max(region[1], region[0] + 1),
            database.head().commit_end,
        ).is_whole
    ]
    return verify_versions(database, still, broken, progress, most_paths=most_paths, pace=pace)


def is_whole_again(
    database: Database,
    hashes: Sequence[bytes],
    regions: Sequence[tuple[int, int]],
    commits: Sequence[int] = (),
) -> bool:
    """Whether what was damaged is so no more: restored, stored again or given up.

    Of what the key index does not find, only a verification of everything can say that nobody needs it.

    Reads it; a few milliseconds for some dozens.

    Args:
        database: the database.
        hashes: identities of objects.
        regions: (begin, end) of bytes of the log.
        commits: numbers of commits whose records could not be read.
    """
    index, log = database.objects.index, database.objects.log
    limit = database.head().commit_end
    for hash in hashes:
        place = index.find(hash)
        if place is None:
            if hash in Lost.of(database):
                continue
            return False
        end = place.offset + record_size(place.stored_length)
        if not check_stretch(log.storage.read, place.offset, end, end, log.database_id).is_whole:
            return False
    if not all(_is_told(database, sequence) for sequence in commits):
        return False
    return all(
        _checked(database, boundary_before(database, begin), min(max(begin + 1, end), limit), limit).is_whole
        for begin, end in regions
    )


def _is_told(database: Database, sequence: int) -> bool:
    """Whether a commit's record can be read, or was given up by a repair."""
    try:
        database.commit(sequence)
    except NotFound:
        return sequence in Lost.of(database).commits
    except (CorruptRecord, UnsupportedFormat):
        return False
    return True


def _checked(database: Database, start: int, stop: int, limit: int) -> Stretch:
    log = database.objects.log
    return check_stretch(log.storage.read, start, stop, limit, log.database_id)


def _is_known(database: Database, one: DamagedObject) -> bool:
    place = database.objects.index.find(one.hash)
    return place is not None and place.offset == one.offset
