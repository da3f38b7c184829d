"""What the rules of a scoped key allow at a path: the first rule whose glob matches decides, and none denies.

Most rules name a place (``/reports/2026/**``), so they stand in a tree by the segments before their first
wildcard: a decision costs a look for each level of the path, however many rules there are. Only what is
behind that is made an expression.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from svc.executor import in_turns
from svc.globs import PathGlob
from svc.paths import Path, format_path
from svc.plugins.contracts import Operation, ScopedRule

__all__ = ["FLAG_LETTERS", "RuleSet", "compiled_rules", "parse_flags"]

FLAG_LETTERS = "".join(operation.letter for operation in Operation)
"""The letters of a flags string in their places: ``crudlify``."""

_ON_THE_WAY = Operation.READ.bit | Operation.LIST.bit
_KNOWN_RULES = 4096
_KNOWN_BYTES = 64 << 20
_BYTES_OF_A_CHARACTER = 40
_BYTES_OF_A_SEGMENT = 400
_KNOWN_PARTS = 64


def parse_flags(flags: str) -> frozenset[Operation] | None:
    """Returns the operations that a flags string allows, or None when it is not a flags string.

    Args:
        flags: exactly 8 characters, each the letter of its place or ``-``.
    """
    if len(flags) != len(FLAG_LETTERS):
        return None
    allowed = set()
    for operation, flag in zip(Operation, flags, strict=True):
        if flag == operation.letter:
            allowed.add(operation)
        elif flag != "-":
            return None
    return frozenset(allowed)


class _Rule(NamedTuple):
    number: int
    mask: int
    literal: Path
    """The segments before the first wildcard."""
    spans: bool
    """Whether ``**`` alone follows them."""
    rest: PathGlob | None
    """What follows, for paths from there on; None where nothing does, or ``**`` alone."""

    def covers(self, path: Path) -> bool:
        """Whether the glob fits a path that begins with its literal segments, and all that may lie below."""
        if self.rest is None:
            return self.spans
        return self.rest.covers(format_path(path[len(self.literal) :]))

    def may_match_below(self, path: Path) -> bool:
        """Whether the glob fits any path, or could fit something below it."""
        depth = len(self.literal)
        if path[:depth] != self.literal[: len(path)]:
            return False
        if len(path) <= depth:
            return True
        return self.spans if self.rest is None else self.rest.may_match_below(path[depth:])


class _Place:
    """A place that literal segments of rules lead to."""

    __slots__ = ("below", "leads_on", "rules")

    def __init__(self) -> None:
        self.below: dict[str, _Place] = {}
        self.rules: tuple[_Rule, ...] = ()
        self.leads_on = False
        """Whether a directory here is on the way to what a rule allows."""

    def all_rules(self) -> Iterator[_Rule]:
        """Yields the rules here and below."""
        places = [self]
        while places:
            place = places.pop()
            yield from place.rules
            places += place.below.values()


class RuleSet:
    """The rules of one key, made ready. Immutable; safe in every thread."""

    __slots__ = ("_parts", "_root", "_rules")

    def __init__(self, rules: tuple[ScopedRule, ...]) -> None:
        """Makes them ready, in turns: that may take a tenth of a second."""
        self._rules: list[_Rule] = []
        self._root = _Place()
        for number, rule in enumerate(in_turns(rules)):
            self._add(number, rule.flags, _segments_of(rule.glob))
        self._parts: dict[tuple[Operation, Path], tuple[tuple[Path, bool], ...]] = {}

    def _add(self, number: int, flags: str, segments: list[str]) -> None:
        literal = _literal_part(segments)
        rest = segments[len(literal) :]
        spans = rest == ["**"]
        # A malformed flags string allows nothing: fail closed.
        mask = sum(operation.bit for operation in parse_flags(flags) or ())
        glob = None if spans or not rest else PathGlob(rest)
        rule = _Rule(number, mask, literal, spans, glob)
        self._rules.append(rule)
        place = self._root
        for segment in literal:
            place.leads_on |= bool(mask)
            place = place.below.setdefault(segment, _Place())
        place.leads_on |= bool(mask and rest)
        place.rules += (rule,)

    def mask(self, path: Path, *, directory: bool) -> int:
        """Returns the operations that the rules allow at a path, as the bits of ``Operation.bit``.

        A ``directory`` that no rule matches may be read and listed if it is on the way to what a rule allows,
        so that a client can walk down to it.
        """
        place: _Place | None = self._root
        found: Sequence[_Rule] = self._root.rules
        for segment in path:
            place = place.below.get(segment) if place is not None else None
            if place is None:
                break
            if place.rules:
                found = sorted((*found, *place.rules)) if found else place.rules
        text, behind = "", -1
        for rule in found:
            depth = len(rule.literal)
            if rule.rest is None:
                if rule.spans or depth == len(path):
                    return rule.mask
                continue
            if depth != behind:
                text, behind = format_path(path[depth:]), depth
            if rule.rest.matches(text):
                return rule.mask
        if directory and (
            (place is not None and place.leads_on)
            or any(rule.mask and rule.rest is not None and rule.may_match_below(path) for rule in found)
        ):
            return _ON_THE_WAY
        return 0

    def allows_below(self, operation: Operation, path: Path) -> bool:
        """Whether the rules allow an operation on a path and on everything that may lie below it.

        The first rule that matches all of it decides; those before it may match a part only if they allow it.
        """
        for rule in sorted(self._rules_around(path)):
            if path[: len(rule.literal)] == rule.literal and rule.covers(path):
                return bool(rule.mask & operation.bit)
            if not rule.mask & operation.bit and rule.may_match_below(path):
                return False
        return False

    def _rules_around(self, path: Path) -> Iterator[_Rule]:
        """Yields the rules whose literal segments lead to a path, or to something below it."""
        place = self._root
        for segment in path:
            yield from place.rules
            below = place.below.get(segment)
            if below is None:
                return
            place = below
        yield from place.all_rules()

    def parts(self, operation: Operation, path: Path) -> tuple[tuple[Path, bool], ...]:
        """Where the rules may allow an operation on files; as ``Rights.visible_parts``."""
        known = self._parts.get((operation, path))
        if known is None:
            found = set()
            for rule in self._rules_around(path):
                if rule.mask & operation.bit and rule.may_match_below(path):
                    found.add(rule.literal if rule.literal[: len(path)] == path else path)
            known = tuple((at, self.allows_below(operation, at)) for at in in_turns(sorted(found)))
            if len(self._parts) >= _KNOWN_PARTS:
                self._parts.clear()
            self._parts[operation, path] = known
        return known


_by_object: dict[int, tuple[tuple[ScopedRule, ...], RuleSet]] = {}
_by_rules: dict[tuple[ScopedRule, ...], RuleSet] = {}
_known_bytes = 0


def compiled_rules(rules: tuple[ScopedRule, ...]) -> RuleSet:
    """Returns rules made ready; the same object for the same rules, while it is in use."""
    # Nearly always the very tuple of the request before: to hash a hundred rules takes as long as a GET.
    known = _by_object.get(id(rules))
    if known is not None and known[0] is rules:
        return known[1]
    made = _by_rules.get(rules)
    if made is None:
        made = RuleSet(rules)
        _keep(rules, made)
    if len(_by_object) >= _KNOWN_RULES:
        _by_object.clear()
    _by_object[id(rules)] = rules, made
    return made


def _keep(rules: tuple[ScopedRule, ...], made: RuleSet) -> None:
    """Keeps what was made ready, and forgets all that was, where that has become much."""
    global _known_bytes
    size = sum(
        len(rule.glob) * _BYTES_OF_A_CHARACTER + rule.glob.count("/") * _BYTES_OF_A_SEGMENT for rule in rules
    )
    if len(_by_rules) >= _KNOWN_RULES or _known_bytes + size > _KNOWN_BYTES:
        _by_rules.clear()
        _by_object.clear()
        _known_bytes = 0
    _by_rules[rules] = made
    _known_bytes += size


def _segments_of(glob: str) -> list[str]:
    """The segments of a glob in the normal form of paths, so that no rule that denies misses its path."""
    normal = unicodedata.normalize("NFC", glob)
    return [segment for segment in normal.split("/") if segment and segment != "."]


def _literal_part(segments: list[str]) -> Path:
    literal: list[str] = []
    for segment in segments:
        if "*" in segment or "?" in segment:
            break
        literal.append(segment)
    return tuple(literal)
