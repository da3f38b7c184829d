"""What a database says of its collections, though its system tree may be damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.database.collection.plan import decode_plan
from svc.database.collection.record import PLAN_PATH, read_state
from svc.errors import SvcError

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["known_horizon", "planned_runs"]


def known_horizon(database: Database) -> int:
    """Returns the horizon as the latest system tree says that can be read; 0 where none can."""
    try:
        return database.horizon()
    except SvcError:
        pass
    for sequence in range(database.head().sequence - 1, 0, -1):
        try:
            return read_state(database.version_of(database.commit(sequence).system_root)).horizon
        except SvcError:
            continue
    return 0


def planned_runs(database: Database) -> list[tuple[int, int]]:
    """Returns (begin, end) of what a collection that was begun makes voids of: a header there may be torn."""
    try:
        system = database.system()
        entry = system.get(PLAN_PATH) if read_state(system).pending else None
        return [] if entry is None else list(decode_plan(system.read_all(entry)))
    except SvcError:
        return []
