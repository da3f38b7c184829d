"""The horizon of a database whose system tree may be damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.database.collection.record import read_state
from svc.errors import SvcError

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["known_horizon"]


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
