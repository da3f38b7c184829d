"""Marks: how far a view is, and in which log.

A mark names the last commit by number and identity: data of another log (an older copy) are recognised.
"""

from __future__ import annotations

import struct
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, NamedTuple

import lmdb

from svc.errors import SvcError
from svc.hashing import HASH_SIZE, Hash
from svc.objects.environments import look_into_environment

if TYPE_CHECKING:
    from svc.database.database import Database
    from svc.database.view import View

__all__ = [
    "DATABASES",
    "MAP_SIZE",
    "MARK_KEY",
    "NO_HASH",
    "OTHER_MARK_KEY",
    "ViewMark",
    "applied_in",
    "mark_is_of_log",
    "storage_directory",
]

LAYOUT = 4
"""Number of the kernel's own part of the layout: the mark, how long keys are stored, checksums of rows."""

DATABASES = (b"data", b"other")
"""The two sides of a view's data: while the one is made anew, the other is read."""

MAP_SIZE = 1 << 38
MARK_KEY = b"mark"
OTHER_MARK_KEY = b"other mark"
"""Names the mark of the side that is being made anew."""

_MARK = struct.Struct("<II16sQ32sII32sQQII")
NO_HASH = bytes(HASH_SIZE)


class ViewMark(NamedTuple):
    """What stands beside a view's data.

    Attributes:
        applied: number of the last commit that is wholly in it; 0 when none is.
        identity: hash of that commit's record; zeros when there is none.
        steps: how many steps of the commits after it, which were begun together, are in it too.
        more: how many of those there are beyond the first.
        begun: hash of the record of the last of them; zeros when ``steps`` is 0.
        horizon: number of the commit that was the horizon of the collection that the data are by.
        begun_at: the horizon when the commits that ``steps`` are of were begun.
        collected: how many steps are done of taking the trees of the next commit behind ``horizon`` out.
        side: which of the two databases holds the data.
    """

    format: int
    database_id: bytes
    applied: int = 0
    identity: Hash = NO_HASH
    steps: int = 0
    more: int = 0
    begun: Hash = NO_HASH
    horizon: int = 0
    begun_at: int = 0
    collected: int = 0
    side: int = 0

    def pack(self) -> bytes:
        """Returns the bytes that are stored."""
        return _MARK.pack(LAYOUT, *self)

    @classmethod
    def unpack(cls, value: bytes | None) -> ViewMark | None:
        """Returns the mark of stored bytes; None when they are none of this layout."""
        if value is None or len(value) != _MARK.size:
            return None
        layout, *fields = _MARK.unpack(value)
        return cls(*fields) if layout == LAYOUT else None


def storage_directory(views: FilePath, view: View) -> FilePath:
    """Returns where a view's data live: programs with different formats of one view never meet."""
    return views / f"{view.name}-{LAYOUT}.{view.format}"


def mark_is_of_log(mark: ViewMark, database: Database, view: View) -> bool:
    """Whether a mark is of this view's format, and names commits that this very log holds."""
    if (mark.format, mark.database_id) != (view.format, database.database_id):
        return False
    if mark.applied and database.commit_identity(mark.applied) != mark.identity:
        return False
    return not mark.steps or database.commit_identity(mark.applied + 1 + mark.more) == mark.begun


def applied_in(database: Database, view: View) -> int:
    """Returns the number of the last commit in a view's data, 0 for none of this log; changes nothing."""
    directory = storage_directory(database.state_directory / "views", view)
    if not (directory / "data.mdb").exists():
        return 0
    try:
        mark = ViewMark.unpack(look_into_environment(directory, MAP_SIZE, MARK_KEY))
    except (lmdb.Error, OSError, SvcError):
        return 0
    if mark is None or not mark_is_of_log(mark, database, view):
        return 0
    return mark.applied
