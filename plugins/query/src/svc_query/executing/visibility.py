"""Which documents the caller may read: worked out before anything is counted, ordered or named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from svc.plugin import Path
from svc_query.snapshot import Snapshot

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["Caller", "Scope", "scope_of"]

_CHECKED_AT_ONCE = 2_048


class Caller(NamedTuple):
    """What a caller may read at and below the path of a query.

    Attributes:
        parts: (path, whether all of it is for them), disjoint; outside of these nothing is.
        may: whether they may read the file at a path; asked where a part leaves it open.
        sees_all: whether everything in the database is for them.
        shown: whether they may know of the directory itself, whatever is in it.
    """

    parts: tuple[tuple[Path, bool], ...]
    may: Callable[[Path], bool]
    sees_all: bool
    shown: bool = True

    @classmethod
    def of_everything(cls, path: Path) -> Caller:
        """Returns one who may read everything at and below a path."""
        return cls(((path, True),), lambda _: True, sees_all=True)


class Scope(NamedTuple):
    """The documents that a query is about.

    ``unchecked`` are those of the ``numbers`` for which the caller's permission is still to be asked.
    ``parts`` is where they all stand, in path order, disjoint.
    """

    numbers: BitMap
    unchecked: BitMap
    parts: tuple[Path, ...]
    caller: Caller

    def admits(self, number: int, path: Path) -> bool:
        """Whether the caller may read a document of ``numbers``."""
        return number not in self.unchecked or self.caller.may(path)


def scope_of(snapshot: Snapshot, caller: Caller, rest: Callable[[], None]) -> Scope:
    """Returns the documents that a query of a caller is about."""
    from pyroaring import BitMap

    parts = tuple(sorted(path for path, _ in caller.parts))
    certain = [path for path, whole in caller.parts if whole]
    unsure = [path for path, whole in caller.parts if not whole]
    numbers = _union(snapshot, certain)
    unchecked: BitMap = BitMap()
    for path in unsure:
        unchecked |= snapshot.below(path)
    if unchecked:
        if len(unchecked) <= _CHECKED_AT_ONCE:
            rest()
            numbers = numbers | BitMap(
                [one.id for one in snapshot.documents(unchecked) if caller.may(one.path)]
            )
            unchecked = BitMap()
        else:
            numbers = numbers | unchecked
    return Scope(numbers, unchecked, parts, caller)


def _union(snapshot: Snapshot, paths: Sequence[Path]) -> BitMap:
    from pyroaring import BitMap

    if len(paths) == 1:
        return snapshot.below(paths[0])
    return BitMap.union(BitMap(), *(snapshot.below(path) for path in paths))
