"""What differs between two versions, in the parts of the tree where a caller may see something.

A directory on the way to such a part is looked at by the names that lead there: whatever else changes in it
costs nothing, and so tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from svc.plugin import EMPTY_ROOT, Entry, EntryKind, Hash, Path, Version

__all__ = ["Difference", "Scope", "common_scope", "differing", "scope_of"]

Difference = tuple[Path, Entry | None, Entry | None]
"""A path, and what stands there before and after."""

Scope = dict[str, "Scope | None"]
"""By name, where below a directory something may be seen; None: everywhere there."""

_DIRECTORY = EntryKind.DIRECTORY


def scope_of(paths: Iterable[Path]) -> Scope | None:
    """Returns the scope of the parts at and below some paths."""
    scope: Scope = {}
    for path in sorted(paths):
        if not path:
            return None
        place = scope
        for name in path[:-1]:
            below = place.setdefault(name, {})
            if below is None:
                break
            place = below
        else:
            place[path[-1]] = None
    return scope


def common_scope(left: Scope | None, right: Scope | None) -> Scope | None:
    """Returns where both scopes look."""
    if left is None or right is None:
        return right if left is None else left
    found: Scope = {}
    # Level by level: a path may have two thousand.
    waiting = [(found, left, right)]
    while waiting:
        into, one, other = waiting.pop()
        for name in one.keys() & other.keys():
            below, beside = one[name], other[name]
            if below is None or beside is None:
                into[name] = beside if below is None else below
            else:
                deeper = into[name] = {}
                waiting.append((deeper, below, beside))
    return found


class _Step(NamedTuple):
    """Two entries that differ; ``behind`` is where to go on below them if they were met before."""

    name: str
    before: Entry | None
    after: Entry | None
    scope: Scope | None
    behind: Path | None = None


def differing(before: Version, after: Version, scope: Scope | None, place: Path = ()) -> Iterator[Difference]:
    """Yields what differs, in path order; directories too, whose entries differ when something below does.

    Args:
        before: one version.
        after: the other.
        scope: where to look.
        place: a path to start behind.
    """
    levels: list[tuple[Path, Iterator[_Step]]] = [((), _level(before, after, scope, place))]
    while levels:
        above, steps = levels[-1]
        step = next(steps, None)
        if step is None:
            levels.pop()
            continue
        path = (*above, step.name)
        if step.behind is None:
            yield path, step.before, step.after
        old, new = _directory(step.before), _directory(step.after)
        if old != new:
            below = _level(before.sibling(old), after.sibling(new), step.scope, step.behind or ())
            levels.append((path, below))


def _level(before: Version, after: Version, scope: Scope | None, place: Path) -> Iterator[_Step]:
    name = place[0] if place else None
    if name is not None and (scope is None or name in scope):
        sides = before.get((name,)), after.get((name,))
        if sides[0] != sides[1]:
            yield _Step(name, *sides, _below(scope, name), place[1:])
    if scope is None:
        for found, old, new in before.differences(after, after=name):
            yield _Step(found, old, new, None)
        return
    for found in sorted(scope):
        if name is None or found > name:
            sides = before.get((found,)), after.get((found,))
            if sides[0] != sides[1]:
                yield _Step(found, *sides, scope[found])


def _below(scope: Scope | None, name: str) -> Scope | None:
    return None if scope is None else scope[name]


def _directory(entry: Entry | None) -> Hash:
    return entry.hash if entry is not None and entry.kind is _DIRECTORY else EMPTY_ROOT
