"""What the rules of a scoped key allow at a path: the first rule whose glob matches decides, and none denies.

Most rules name a place (``/reports/2026/**``), so a rule is found by the segments before its first wildcard:
a decision costs a look for each level of the path, however many rules there are.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from svc.globs import segment_expression
from svc.paths import Path, format_path
from svc.plugins.contracts import Operation, ScopedRule

__all__ = ["FLAG_LETTERS", "RuleSet", "compiled_rules", "parse_flags"]

FLAG_LETTERS = "".join(operation.letter for operation in Operation)
"""The letters of a flags string in their places: ``crudlify``."""

_NOTHING = re.compile("(?!)")
_ON_THE_WAY = Operation.READ.bit | Operation.LIST.bit
_KNOWN_RULES = 4096


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
    matches: re.Pattern[str]
    leads_to: tuple[re.Pattern[str], ...]
    segments: tuple[re.Pattern[str] | None, ...]
    """One for each segment of the glob; None for ``**``."""


class RuleSet:
    """The rules of one key, made ready. Immutable; safe in every thread.

    Args:
        rules: in their order.
    """

    __slots__ = ("_depths", "_found", "_rules", "_ways")

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

    def mask(self, path: Path, *, directory: bool) -> int:
        """Returns the operations that the rules allow at a path, as the bits of ``Operation.bit``.

        Args:
            path: the path.
            directory: whether a directory stands there. One that no rule matches may be read and listed if
                it is on the way to what a rule allows, so that a client can walk down to it.
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
            if rule.matches.fullmatch(text):
                return rule.mask
        if directory and (path in self._ways or self._leads_on(found, path)):
            return _ON_THE_WAY
        return 0

    def allows_below(self, operation: Operation, path: Path) -> bool:
        """Whether the rules allow an operation on a path and on everything that may lie below it.

        The first rule that matches all of it decides. Rules before that one may match a part only if they
        allow the operation.
        """
        text = format_path(path)
        for rule in self._rules:
            if rule.segments[-1:] == (None,) and rule.matches.fullmatch(text):
                return bool(rule.mask & operation.bit)
            if not rule.mask & operation.bit and _may_fit_below(rule.segments, path):
                return False
        return False

    @staticmethod
    def _leads_on(found: list[_Rule] | None, path: Path) -> bool:
        text = format_path(path)
        return any(rule.mask and any(way.fullmatch(text) for way in rule.leads_to) for rule in found or ())


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
    """The segments of a glob in the form that paths have: a rule that denies must not miss its path."""
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
    each = tuple(
        None if segment == "**" else re.compile(segment_expression(segment, classes=False))
        for segment in segments
    )
    matches = _compile_glob(segments)
    ways = tuple(_ways_into(segments, len(literal)))
    return _Rule(number, mask, literal if spans or not rest else None, spans, matches, ways, each)


def _ways_into(segments: list[str], literal: int) -> list[re.Pattern[str]]:
    """The directories on the way to what a glob matches, further down than its first wildcard."""
    ways: list[re.Pattern[str]] = []
    for count in range(literal, len(segments)):
        # From "**" on every directory may lead to a match, and what lies below "**" matches anyway.
        ways.append(_compile_glob(segments[:count]))
        if segments[count] == "**":
            if count + 1 < len(segments):
                ways.append(_compile_glob([*segments[:count], "**"]))
            break
    return ways


def _may_fit_below(segments: tuple[re.Pattern[str] | None, ...], path: Path) -> bool:
    """Whether a glob fits the path, or could fit something below it."""
    places = _behind_any_depth(segments, {0})
    for name in path:
        reached = set()
        for place in places:
            segment = segments[place] if place < len(segments) else _NOTHING
            if segment is None:
                reached.add(place)
            elif segment.fullmatch(name):
                reached.add(place + 1)
        places = _behind_any_depth(segments, reached)
    return bool(places)


def _behind_any_depth(segments: tuple[re.Pattern[str] | None, ...], places: set[int]) -> set[int]:
    """The places in a glob that are reached from others when ``**`` stands for no segment."""
    for place, segment in enumerate(segments):
        if segment is None and place in places:
            places.add(place + 1)
    return places


def _compile_glob(segments: list[str]) -> re.Pattern[str]:
    """A path glob as a pattern over absolute paths; no glob makes it slow.

    ``*`` and ``?`` stay within a segment; ``**`` as a segment takes any number of them, and at the end
    of a glob also none, so that ``/a/**`` holds ``/a``. What is between two ``**`` is an atomic group: the
    first place where it fits leaves most to what follows.
    """
    if not segments:
        return re.compile("/")
    # The root, whose text is "/", has no segment for "*" to stand for: only "**" segments match it.
    if all(segment == "**" for segment in segments):
        return re.compile(r"/|(?:/[^/]++)*")
    first, *runs = _split_at_any_depth(segments)
    pattern = rf"(?!/\Z){first}"
    if runs:
        middle = "".join(f"(?>(?:/[^/]++)*?{run}(?=/|\\Z))" for run in runs[:-1] if run)
        pattern += f"{middle}(?:/[^/]++)*{runs[-1]}"
    return re.compile(pattern)


def _split_at_any_depth(segments: list[str]) -> list[str]:
    """The expressions of what stands before, between and behind the ``**`` of a glob."""
    runs = [""]
    for segment in segments:
        if segment == "**":
            runs.append("")
        else:
            runs[-1] += "/" + segment_expression(segment, classes=False)
    return runs
