"""What all changes of users, groups and grants have in common."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Generic, TypeVar

from msgspec import Struct

from svc.plugin import Condition, Database, Path, Transaction, Version, in_turns

__all__ = ["NEW", "Page", "erase", "keep", "page_of", "present_ms"]

NEW = Condition(if_none_match=("*",))
"""The condition that a path holds nothing yet."""

T = TypeVar("T")


class Page(Struct, Generic[T], frozen=True):
    """A part of a list; it may be empty although more follows, behind ``next_cursor`` where that is set."""

    items: list[T]
    next_cursor: str | None


def page_of(found: Iterable[tuple[str, T | None]], limit: int, scanned: int) -> Page[T]:
    """Returns the first items of a list, and where it goes on.

    ``found`` is what was looked at, each with its cursor; None is not shown. At most ``scanned`` are looked
    at.
    """
    items: list[T] = []
    last: str | None = None
    for number, (cursor, item) in enumerate(in_turns(found)):
        if len(items) == limit or number == scanned:
            return Page(items, last)
        last = cursor
        if item is not None:
            items.append(item)
    return Page(items, None)


def present_ms(database: Database) -> int:
    """The present time, never before the last commit's."""
    return max(time.time_ns() // 1_000_000, database.head().time_ms)


def keep(transaction: Transaction, system: Version, path: Path) -> None:
    """Makes a commit fail (PreconditionFailed) unless the file at a path is still what it was."""
    entry = system.get(path)
    assert entry is not None
    condition = Condition(if_match=(entry.hash.hex(),))
    transaction.put_system(path, system.read_all(entry), condition=condition)


def erase(transaction: Transaction, path: Path, *, directory: bool = False) -> None:
    """Removes what stands at a path by the time of the commit, be it nothing."""
    transaction.put_system((*path, "-") if directory else path, b"")
    transaction.delete_system(path)
