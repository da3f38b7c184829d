"""What grants add up to: a value that answers for any path what a user may do there.

The rule: for an operation on a path look at the levels from the path itself up to the root. The nearest one
where a grant says something about the operation decides; at one level deny beats allow; nothing said is
denied. A grant with a pattern counts at the level of its own path, for the paths that match.

A question costs a few lookups: what a directory passes on to what is in it is worked out once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from svc.plugin import Operation, Path, PathGlob, format_path, parse_flags
from svc_users.records import FLAGS, Grant, path_of

__all__ = ["GrantedRights", "Rule", "bit_of", "mask_of", "rule_of"]

_BITS: Final = {operation.letter: operation.bit for operation in Operation}
_EVERYTHING: Final = (1 << len(FLAGS)) - 1
_SHOWN: Final = Operation.READ.bit | Operation.LIST.bit
_MOST_REMEMBERED = 8192
_MOST_PARTS_REMEMBERED = 64


class _Pattern(NamedTuple):
    glob: PathGlob
    allow: int
    deny: int


class Rule(NamedTuple):
    """A grant as the rights use it: flags are bits. ``path`` is where it hangs.

    ``pattern`` is the paths below for which it holds; None: all, and the path itself.
    """

    path: Path
    allow: int
    deny: int
    pattern: PathGlob | None


UNREADABLE: Final = Rule((), 0, _EVERYTHING, None)
"""What a grant counts as that can't be read: it may have denied something, so the root denies everything."""


class _Level(msgspec.Struct, frozen=True, gc=False):
    """What the grants at one path say; ``depth`` counts its segments.

    Attributes:
        allow: what they allow wherever no pattern says otherwise, less what they deny.
        deny: what they deny everywhere.
        patterns: what they say of some paths only.
    """

    depth: int
    allow: int
    deny: int
    patterns: tuple[_Pattern, ...]


class _Passed(msgspec.Struct, frozen=True, gc=False):
    """What a directory passes on where patterns have a say: levels from the nearest up, then what is left."""

    levels: tuple[_Level, ...]
    rest: int


def bit_of(operation: Operation) -> int:
    """Returns the bit of an operation."""
    return _BITS[operation.letter]


@lru_cache(maxsize=4096)
def mask_of(flags: str, malformed: int) -> int:
    """Returns the bits of a flags string; ``malformed`` for one that is none."""
    operations = parse_flags(flags)
    return malformed if operations is None else sum(map(bit_of, operations))


def rule_of(grant: Grant) -> Rule:
    """Returns a grant as the rights use it; flags that are malformed allow nothing and deny everything."""
    pattern = grant.path_pattern
    return Rule(
        path_of(grant),
        mask_of(grant.allow, 0),
        mask_of(grant.deny, _EVERYTHING),
        None if pattern is None else pattern_glob(pattern),
    )


@lru_cache(maxsize=4096)
def pattern_glob(pattern: str) -> PathGlob:
    """Returns the glob of a pattern, over paths relative to that of its grant."""
    return PathGlob([segment for segment in pattern.split("/") if segment and segment != "."])


class GrantedRights:
    """What a set of grants allows; see ``svc.plugin.Rights``. It never changes, so threads share it.

    Args:
        rules: the grants.
        fingerprint: stands for them, if there is something that does.
    """

    __slots__ = ("_deepest", "_denied_below", "_leading", "_levels", "_parts", "_passed", "fingerprint")

    def __init__(self, rules: Iterable[Rule], fingerprint: bytes | None = None) -> None:
        self.fingerprint = fingerprint
        self._levels = _levels_of(rules)
        self._denied_below = _denied_below(self._levels.values(), self._levels)
        self._leading = _leading(self._levels)
        self._deepest = max(map(len, self._levels), default=0)
        # By directory: the bits that it passes on, or what to ask where patterns have a say.
        self._passed: dict[Path, int | _Passed] = {}
        self._parts: dict[tuple[Operation, Path], tuple[tuple[Path, bool], ...]] = {}

    def allows(self, operation: Operation, path: Path) -> bool:
        """Whether the operation is granted on the path. A fraction of a microsecond; does not block."""
        passed = self._passed_to(path)
        # The value of a member is read through its class for several times the price of this.
        bit = _BITS[operation._value_]
        if passed.__class__ is int:
            return bool(passed & bit)
        return _allowed(passed, bit, path)  # type: ignore[arg-type]

    def mask(self, path: Path) -> int:
        """Everything that is granted on the path, as the bits of ``Operation.bit``."""
        passed = self._passed_to(path)
        if isinstance(passed, int):
            return passed
        return sum(bit for bit in _BITS.values() if _allowed(passed, bit, path))

    def allows_below(self, operation: Operation, path: Path) -> bool:
        """Whether the operation is granted on the path and on everything that may come to lie below it."""
        bit = _BITS[operation._value_]
        if self._denied_below.get(path, 0) & bit:
            return False
        passed = self._passed_to(path)
        if isinstance(passed, int):
            return bool(passed & bit)
        return _allowed(passed, bit, path) and _allowed_below(passed, bit, path)

    def leads_on(self, path: Path) -> bool:
        """Whether reading or listing may be granted to something below the path; see ``svc.plugin.Rights``.

        A pattern leads as far as something below could fit it. What is denied elsewhere does not count: of
        what is not granted nothing is shown there.
        """
        if path in self._leading:
            return True
        for depth in range(min(len(path), self._deepest) + 1):
            level = self._levels.get(path[:depth])
            if level is not None and any(
                pattern.allow & ~(pattern.deny | level.deny) & _SHOWN
                and pattern.glob.may_match_below(path[depth:])
                for pattern in level.patterns
            ):
                return True
        return False

    def visible_parts(self, operation: Operation, path: Path) -> tuple[tuple[Path, bool], ...]:
        """Where the operation may be granted on files at and below a path; see ``svc.plugin.Rights``."""
        key = operation, path
        known = self._parts.get(key)
        if known is None:
            bit = _BITS[operation._value_]
            found = _granted_above(self._passed_to(path), bit, path)
            if path not in found:
                depth = len(path)
                for at, level in self._levels.items():
                    if len(at) > depth and at[:depth] == path:
                        found.update(_granted_at(level, bit, at))
            known = tuple((at, self.allows_below(operation, at)) for at in found)
            if len(self._parts) >= _MOST_PARTS_REMEMBERED:
                self._parts.clear()
            self._parts[key] = known
        return known

    def _passed_to(self, path: Path) -> int | _Passed:
        """What counts for a path: what the grants at it say, else what its directory passes on."""
        directory = path if path in self._levels else path[:-1]
        if len(directory) > self._deepest:
            directory = directory[: self._deepest]
        passed = self._passed.get(directory)
        return self._work_out(directory) if passed is None else passed

    def _work_out(self, directory: Path) -> int | _Passed:
        """What a directory passes on, worked out from the root down and remembered."""
        passed: int | _Passed = 0
        for depth in range(len(directory) + 1):
            at = directory[:depth]
            level = self._levels.get(at)
            if level is not None:
                passed = _under(level, passed)
        if len(self._passed) >= _MOST_REMEMBERED:
            self._passed.clear()
        self._passed[directory] = passed
        return passed


def _under(level: _Level, above: int | _Passed) -> int | _Passed:
    if level.patterns:
        levels, rest = ((), above) if isinstance(above, int) else (above.levels, above.rest)
        return _Passed((level, *levels), rest)
    said = level.allow | level.deny
    if isinstance(above, int):
        return level.allow | (above & ~said)
    if said == _EVERYTHING:
        return level.allow
    return _Passed((level, *above.levels), above.rest)


def _allowed(passed: _Passed, bit: int, path: Path) -> bool:
    for level in passed.levels:
        allow, deny = level.allow, level.deny
        if level.patterns:
            text = format_path(path[level.depth :])
            for pattern in level.patterns:
                if (pattern.allow | pattern.deny) & bit and pattern.glob.matches(text):
                    allow |= pattern.allow
                    deny |= pattern.deny
        if deny & bit:
            return False
        if allow & bit:
            return True
    return bool(passed.rest & bit)


def _allowed_below(passed: _Passed, bit: int, path: Path) -> bool:
    """Whether nothing that the levels say can deny something at or below a path."""
    for level in passed.levels:
        relative = path[level.depth :]
        if level.deny & bit or any(
            pattern.deny & bit and pattern.glob.may_match_below(relative) for pattern in level.patterns
        ):
            return False
        if level.allow & bit:
            return True
        text = format_path(relative)
        if any(pattern.allow & bit and pattern.glob.covers(text) for pattern in level.patterns):
            return True
    return bool(passed.rest & bit)


def _granted_at(level: _Level, bit: int, at: Path) -> Iterator[Path]:
    """The paths outside of which a level grants nothing."""
    if level.allow & bit:
        yield at
    elif not level.deny & bit:
        for pattern in level.patterns:
            if pattern.allow & bit:
                yield at + pattern.glob.literal


def _granted_above(passed: int | _Passed, bit: int, path: Path) -> set[Path]:
    """The paths at or below a path outside of which what is passed on to it grants nothing."""
    if isinstance(passed, int):
        return {path} if passed & bit else set()
    found: set[Path] = set()
    for level in passed.levels:
        if level.deny & bit:
            return found
        at = path[: level.depth]
        for pattern in level.patterns:
            if pattern.allow & bit and pattern.glob.may_match_below(path[level.depth :]):
                literal = at + pattern.glob.literal
                found.add(literal if literal[: len(path)] == path else path)
        if level.allow & bit:
            return found | {path}
    return found | {path} if passed.rest & bit else found


def _levels_of(rules: Iterable[Rule]) -> dict[Path, _Level]:
    allow: dict[Path, int] = {}
    deny: dict[Path, int] = {}
    patterns: dict[Path, list[_Pattern]] = {}
    for path, allowed, denied, glob in rules:
        of_all = (allowed, denied)
        if glob is not None:
            patterns.setdefault(path, []).append(_Pattern(glob, allowed, denied))
            of_all = (0, 0)
        allow[path] = allow.get(path, 0) | of_all[0]
        deny[path] = deny.get(path, 0) | of_all[1]
    return {
        path: _Level(len(path), allow[path] & ~deny[path], deny[path], tuple(patterns.get(path, ())))
        for path in allow
    }


def _leading(levels: dict[Path, _Level]) -> frozenset[Path]:
    """The paths above those where something may be read or listed."""
    return frozenset(
        path[:depth]
        for path, level in levels.items()
        if level.allow & _SHOWN
        or any(one.allow & ~(one.deny | level.deny) & _SHOWN for one in level.patterns)
        for depth in range(len(path))
    )


def _denied_below(levels: Iterable[_Level], paths: Iterable[Path]) -> dict[Path, int]:
    """By path: what a grant at some path below it may deny, be it on few paths."""
    found: dict[Path, int] = {}
    for path, level in zip(paths, levels, strict=True):
        denied = level.deny
        for pattern in level.patterns:
            denied |= pattern.deny
        if denied:
            for depth in range(len(path)):
                above = path[:depth]
                found[above] = found.get(above, 0) | denied
    return found
