"""How many files and links differ between two trees, for a price that has a limit.

A directory that stands on one side only counts by the totals that the tree keeps. Two directories that
differ are compared once, however many paths lead to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from svc.plugin import Entry, EntryKind, Hash, Path, Version, pause
from svc_history.rows import Counts

__all__ = ["MOST_COUNTED", "Counter", "bounded", "counts_of_sides", "is_directory", "own_counts"]

MOST_COUNTED = 100_000
"""Entries that one request looks at, at most, to count what commits changed."""

_PAUSE_EVERY = 1_024
_MAXIMUM = 2**63 - 1
_ADDED, _MODIFIED, _DELETED = Counts(1, 0, 0), Counts(0, 1, 0), Counts(0, 0, 1)
_NOTHING = Counts()

_Pair = tuple[Hash, Hash]
_Differences = Iterator[tuple[str, Entry | None, Entry | None]]


class Counter:
    """Counts differences until it has looked at a number of entries."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = MOST_COUNTED if limit is None else limit
        self._known: dict[_Pair, Counts] = {}
        self.looked_at = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether it met its limit, so that what it said last is not all."""
        return self.looked_at > self._limit

    def look(self) -> bool:
        """Notes that one more entry is looked at; False when the limit is met."""
        self.looked_at += 1
        if self.looked_at % _PAUSE_EVERY == 0:
            pause()
        return self.looked_at <= self._limit

    def count(self, before: Version, after: Version, path: Path = ()) -> Counts | None:
        """Returns what differs at and below a path of two versions; None when the limit is met first."""
        old, new = before.get(path), after.get(path)
        if old == new:
            return _NOTHING
        counts = counts_of_sides(old, new)
        if counts is not None:
            return counts
        assert old is not None, "the sides are directories"
        assert new is not None, "the sides are directories"
        pair = (old.hash, new.hash)
        return self._known.get(pair) or self._count_directories(before, pair)

    def _count_directories(self, version: Version, pair: _Pair) -> Counts | None:
        known = self._known
        stack: list[tuple[_Pair, _Differences, list[int]]] = []
        waiting: _Pair | None = pair
        while waiting is not None or stack:
            if waiting is not None:
                before, after = version.sibling(waiting[0]), version.sibling(waiting[1])
                stack.append((waiting, before.differences(after), [0, 0, 0]))
                waiting = None
            here, remaining, sums = stack[-1]
            for _, old, new in remaining:
                if not self.look():
                    return None
                counts = counts_of_sides(old, new)
                if counts is None:
                    assert old is not None, "the sides are directories"
                    assert new is not None, "the sides are directories"
                    below = (old.hash, new.hash)
                    counts = known.get(below, _NOTHING)
                    if below not in known:
                        waiting = below
                        break
                _add_to(sums, counts)
            else:
                stack.pop()
                known[here] = bounded(sums)
                if stack:
                    _add_to(stack[-1][2], known[here])
        return known[pair]


def bounded(sums: Iterable[int]) -> Counts:
    """Returns counts that no storage is too small for: like the totals of a tree, they stop at 2^63 - 1."""
    return Counts(*[min(one, _MAXIMUM) for one in sums])


def own_counts(before: Entry | None, after: Entry | None) -> Counts:
    """Returns what two entries that differ add to counts by themselves; directories do not count."""
    had = before is not None and before.kind is not EntryKind.DIRECTORY
    has = after is not None and after.kind is not EntryKind.DIRECTORY
    if had:
        return _MODIFIED if has else _DELETED
    return _ADDED if has else _NOTHING


def counts_of_sides(before: Entry | None, after: Entry | None) -> Counts | None:
    """Returns what two entries that differ add with all that lies below; None for two directories."""
    if before is None or after is None or before.totals is None or after.totals is None:
        if before is not None and after is not None and before.totals is None and after.totals is None:
            return _MODIFIED
        return bounded((_held_by(after), 0, _held_by(before)))
    return None if before.hash != after.hash else _NOTHING


def is_directory(entry: Entry | None) -> bool:
    """Whether an entry is a directory's."""
    return entry is not None and entry.totals is not None


def _held_by(entry: Entry | None) -> int:
    if entry is None:
        return 0
    return 1 if entry.totals is None else entry.totals.files + entry.totals.symlinks


def _add_to(sums: list[int], counts: Counts) -> None:
    sums[0] += counts[0]
    sums[1] += counts[1]
    sums[2] += counts[2]
