"""Offsets where a record certainly begins, whatever a collection has made voids: behind commits.

Of commits in packs, the last one of each range stays in the log.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from svc.log import FIRST, record_size

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["boundary_before"]


def boundary_before(database: Database, position: int) -> int:
    """Returns the end of the last commit before a position, or where the first record begins."""
    index = database.objects.index

    def end_of(sequence: int) -> int:
        place = index.last_commit_place(sequence)  # the record itself may be lost, or in a pack
        return 0 if place is None else place[0] + record_size(place[1])

    found = bisect_right(range(database.head().sequence + 1), position, key=end_of) - 1
    return max(FIRST, end_of(found)) if found > 0 else FIRST
