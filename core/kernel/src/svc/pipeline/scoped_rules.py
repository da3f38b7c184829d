"""What the rules of a scoped key allow at a path: the first rule whose glob matches decides, and none denies.

Most rules name a place (``/reports/2026/**``), so a rule is found by the segments before its first wildcard:
a decision costs a look for each level of the path, however many rules there are.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

from svc.globs import PathGlob
from svc.paths import Path, format_path
from svc.plugins.contracts import Operation, ScopedRule

__all__ = ["FLAG_LETTERS", "RuleSet", "compiled_rules", "parse_flags"]

FLAG_LETTERS = "".join(operation.letter for operation in Operation)
"""The letters of a flags string in their places: ``crudlify``."""

_ON_THE_WAY = Operation.READ.bit | Operation.LIST.bit
_KNOWN_RULES = 4096
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
    exact: Path | None
    """The path, of a glob without wildcards."""
    spans: bool
    """Whether it is such a path with ``**`` behind it."""
    glob: PathGlob
    leads_to: tuple[PathGlob, ...]


class RuleSet:
    """The rules of one key, made ready. Immutable; safe in every thread."""

    __slots__ = ("_depths", "_found", "_parts", "_rules", "_ways")

    def __init__(self, rules: tuple[ScopedRule, ...]) -> None:
        self._rules: list[_Rule] = []
        self._found: dict[Path, list[_Rule]] = {}
        ways: set[Path] = set()
        for number, rule in enumerate(rules):
            segments = _segments_of(rule.glob)
            literal = _literal_part(segments)
            made = _make_rule(number, rule.flags, segments, literal)
            self._rules.append(made)
            self._found.setdefault(literal, []).append(made)
            if made.mask:
                ways.update(literal[:length] for length in range(min(len(literal) + 1, len(segments))))
        self._depths = tuple(sorted({len(literal) for literal in self._found}))
        self._ways = frozenset(ways)
        self._parts: dict[tuple[Operation, Path], tuple[tuple[Path, bool], ...]] = {}

    def mask(self, path: Path, *, directory: bool) -> int:
        """Returns the operations that the rules allow at a path, as the bits of ``Operation.bit``.

        A ``directory`` that no rule matches may be read and listed if it is on the way to what a rule allows,
        so that a client can walk down to it.
        """
        found: list[_Rule] | None = None
        depth = len(path)
        for length in self._depths:
            if length > depth:
                break
            rules = self._found.get(path[:length])
            if rules is not None:
                found = rules if found is None else sorted(found + rules)
        text = ""
        for rule in found or ():
            if rule.exact is not None:
                if rule.spans or rule.exact == path:
                    return rule.mask
                continue
            text = text or format_path(path)
            if rule.glob.matches(text):
                return rule.mask
        if directory and (path in self._ways or self._leads_on(found, path)):
            return _ON_THE_WAY
        return 0

    def allows_below(self, operation: Operation, path: Path) -> bool:
        """Whether the rules allow an operation on a path and on everything that may lie below it.

        The first rule that matches all of it decides; those before it may match a part only if they allow it.
        """
        text = format_path(path)
        for rule in self._rules:
            if rule.glob.covers(text):
                return bool(rule.mask & operation.bit)
            if not rule.mask & operation.bit and rule.glob.may_match_below(path):
                return False
        return False

    def parts(self, operation: Operation, path: Path) -> tuple[tuple[Path, bool], ...]:
        """Where the rules may allow an operation on files; as ``Rights.visible_parts``."""
        known = self._parts.get((operation, path))
        if known is None:
            found = set()
            for rule in self._rules:
                literal = rule.glob.literal
                if rule.mask & operation.bit and rule.glob.may_match_below(path):
                    found.add(literal if literal[: len(path)] == path else path)
            known = tuple((at, self.allows_below(operation, at)) for at in sorted(found))
            if len(self._parts) >= _KNOWN_PARTS:
                self._parts.clear()
            self._parts[operation, path] = known
        return known

    @staticmethod
    def _leads_on(found: list[_Rule] | None, path: Path) -> bool:
        text = format_path(path)
        return any(rule.mask and any(way.matches(text) for way in rule.leads_to) for rule in found or ())


_by_object: dict[int, tuple[tuple[ScopedRule, ...], RuleSet]] = {}


def compiled_rules(rules: tuple[ScopedRule, ...]) -> RuleSet:
    """Returns rules made ready; the same object for the same rules, while it is in use."""
    # Nearly always the very tuple of the request before: to hash a hundred rules takes as long as a GET.
    known = _by_object.get(id(rules))
    if known is not None and known[0] is rules:
        return known[1]
    made = _compile_rules(rules)
    if len(_by_object) >= _KNOWN_RULES:
        _by_object.clear()
    _by_object[id(rules)] = rules, made
    return made


@lru_cache(maxsize=_KNOWN_RULES)
def _compile_rules(rules: tuple[ScopedRule, ...]) -> RuleSet:
    return RuleSet(rules)


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


def _make_rule(number: int, flags: str, segments: list[str], literal: Path) -> _Rule:
    # A malformed flags string allows nothing: fail closed.
    mask = sum(operation.bit for operation in parse_flags(flags) or ())
    rest = segments[len(literal) :]
    spans = rest == ["**"]
    exact = literal if spans or not rest else None
    return _Rule(number, mask, exact, spans, PathGlob(segments), tuple(_ways_into(segments, len(literal))))


def _ways_into(segments: list[str], literal: int) -> list[PathGlob]:
    """The directories that lead to what a glob matches, below its first wildcard."""
    ways: list[PathGlob] = []
    for count in range(literal, len(segments)):
        # From "**" on every directory may lead to a match, and what lies below "**" matches anyway.
        ways.append(PathGlob(segments[:count]))
        if segments[count] == "**":
            if count + 1 < len(segments):
                ways.append(PathGlob([*segments[:count], "**"]))
            break
    return ways
