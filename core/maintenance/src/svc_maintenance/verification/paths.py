"""All damaged paths in all versions: only the changes from one version to the next are followed.

The cost follows the damaged paths that appear and vanish, not the product of versions and paths. The number
of named paths is bounded, however many a tree of copies has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from svc.database.references import CONTINUATION, HEAD_NAME, REFERENCES, reference_name
from svc.hashing import Hash
from svc.paths import Path
from svc_maintenance.verification.report import SYSTEM, Held
from svc_maintenance.verification.taint import DamagedThing, Place, Taint

__all__ = ["DamagedPaths", "NamedDamage"]

_NOTHING: dict[str, Place] = {}
_NOWHERE = Place()


class NamedDamage(NamedTuple):
    """A damaged object at a path."""

    path: Path
    system: bool
    thing: DamagedThing


class _Key(NamedTuple):
    ref: str
    path: Path
    thing: DamagedThing


class DamagedPaths:
    """Follows versions in the order of commits, and remembers from when to when each path leads to damage."""

    def __init__(self, taint: Taint, most: int) -> None:
        self._taint = taint
        self._most = most
        self._roots: tuple[Hash | None, Hash | None] = (None, None)
        self._active: dict[_Key, int] = {}
        self._held: dict[NamedDamage, list[Held]] = {}
        self._sequence = 0
        self.is_complete = True

    def enter(self, sequence: int, root: Hash | None, system_root: Hash | None) -> None:
        """Goes on to a version; a root that is None is not known, or leads to nothing that shall be named."""
        taint = self._taint
        roots = tuple(
            one if one is not None and taint.is_tainted(one) else None for one in (root, system_root)
        )
        for number, (before, after) in enumerate(zip(self._roots, roots, strict=True)):
            if before != after:
                gone, come = self._changes(before, after)
                keys = [self._key(number == 1, *one) for one in come]
                for key in (self._key(number == 1, *one) for one in gone):
                    self._leave(key, sequence)
                for key in keys:
                    self._active.setdefault(key, sequence)
        self._roots = (roots[0], roots[1])
        self._sequence = sequence

    def finish(self) -> dict[NamedDamage, list[Held]]:
        """Returns every path with the versions that have it, in the order in which they were met."""
        for key, first in self._active.items():
            self._note(key, Held(key.ref, first, self._sequence, True))
        self._active.clear()
        return self._held

    def _leave(self, key: _Key, sequence: int) -> None:
        first = self._active.pop(key, None)
        if first is not None:
            self._note(key, Held(key.ref, first, sequence - 1, False))

    def _note(self, key: _Key, held: Held) -> None:
        named = NamedDamage(key.path, key.ref == SYSTEM, key.thing)
        self._held.setdefault(named, []).append(held)

    def _key(self, system: bool, path: Path, thing: DamagedThing) -> _Key:
        if not system:
            return _Key(HEAD_NAME, path, thing)
        if len(path) > 2 and path[0] == REFERENCES:
            end = 3
            while end < len(path) and path[end - 1].endswith(CONTINUATION):
                end += 1
            return _Key(reference_name(path[:end]), path[end:], thing)
        return _Key(SYSTEM, path, thing)

    def _changes(
        self, before: Hash | None, after: Hash | None
    ) -> tuple[list[tuple[Path, DamagedThing]], list[tuple[Path, DamagedThing]]]:
        """Returns what leads to damage in one tree alone, and what does in the other alone."""
        gone: list[tuple[Path, DamagedThing]] = []
        come: list[tuple[Path, DamagedThing]] = []
        stack: list[tuple[Path, Hash | None, Hash | None]] = [((), before, after)]
        while stack:
            prefix, left, right = stack.pop()
            there = self._taint.places(left) if left is not None else _NOTHING
            here = self._taint.places(right) if right is not None else _NOTHING
            for name in there.keys() | here.keys():
                one, other = there.get(name, _NOWHERE), here.get(name, _NOWHERE)
                if one == other:
                    continue
                path = (*prefix, name) if name else prefix
                gone += [(path, thing) for thing in one.things if thing not in other.things]
                come += [(path, thing) for thing in other.things if thing not in one.things]
                if one.below is not None and other.below is not None:
                    stack.append((path, one.below, other.below))
                elif one.below is not None:
                    gone += self._below(path, one.below, len(gone))
                elif other.below is not None:
                    come += self._below(path, other.below, len(come))
            if max(len(gone), len(come)) >= self._most:
                self.is_complete = False
                break
        room = max(0, self._most - len(self._active) - len(self._held))
        if len(come) > room:
            self.is_complete = False
        return gone, come[:room]

    def _below(self, path: Path, root: Hash, found: int) -> Iterator[tuple[Path, DamagedThing]]:
        """Yields what leads to damage below a directory, as much as there is room for."""
        stack = [(path, root)]
        while stack:
            prefix, at = stack.pop()
            for name, place in self._taint.places(at).items():
                where = (*prefix, name) if name else prefix
                for thing in place.things:
                    yield where, thing
                    found += 1
                if place.below is not None:
                    stack.append((where, place.below))
            if found >= self._most:
                self.is_complete = False
                return
