"""May this identity do this to this path? ``permits`` decides, for every route, listing and event.

Root may do everything; everyone else may do what the rights of the user grant, and silence denies. The rules
of a scoped key then narrow what is left, root's too. A share key has no user: its rules are all it has.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from svc.globs import segment_expression
from svc.paths import Path, format_path, is_system_path
from svc.plugins.contracts import Identity, Operation, ScopedRule

__all__ = [
    "FLAG_LETTERS",
    "effective_permissions",
    "format_flags",
    "hides_denials",
    "is_unrestricted_root",
    "parse_flags",
    "permits",
]

FLAG_LETTERS = "".join(operation.letter for operation in Operation)
"""The letters of a flags string in their places: ``crudlify``."""

_NOTHING = re.compile("(?!)")
_ANCESTOR_OPERATIONS = frozenset((Operation.READ, Operation.LIST))


def permits(identity: Identity, operation: Operation, path: Path, *, below: bool = False) -> bool:
    """Whether ``identity`` may do ``operation`` to ``path``.

    Nobody may do anything to a path of the system namespace through this function: what belongs to the
    system is reached by routes of its own.

    Args:
        identity: who asks.
        operation: what for.
        path: segments of the path, links resolved by the caller where they are followed.
        below: asks for the path and everything below it, whatever that is. Decided from what was granted
            alone, without a look at the tree: yes is certain, and no means that each path must be asked for.
    """
    if is_system_path(path):
        return False
    rules, rights = identity.rules, identity.rights
    if rules and not (_rules_allow_below if below else _rules_allow)(rules, operation, path):
        return False
    if identity.is_root:
        return True
    if rights is None:
        # A share key (no owner) has its rules as its only authority; they allowed it above.
        return identity.user_id is None and bool(rules)
    if not below:
        return rights.allows(operation, path)
    # The rights of an older auth mode may lack the method.
    allows_below = getattr(rights, "allows_below", None)
    return allows_below is not None and bool(allows_below(operation, path))


def effective_permissions(identity: Identity, path: Path) -> str:
    """Returns the 8-character flags of what ``identity`` may do to ``path``."""
    return "".join(operation.letter if permits(identity, operation, path) else "-" for operation in Operation)


def hides_denials(identity: Identity) -> bool:
    """Whether a denial must look like a missing path (404) to this identity, rather than 403."""
    return bool(identity.rules)


def is_unrestricted_root(identity: Identity) -> bool:
    """Whether the identity may use the routes of root: root itself, by a key without a scope."""
    return identity.is_root and not identity.rules


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


def format_flags(operations: frozenset[Operation]) -> str:
    """Returns the flags string that allows ``operations``."""
    return "".join(operation.letter if operation in operations else "-" for operation in Operation)


class _CompiledRule(NamedTuple):
    matches: re.Pattern[str]
    leads_to: tuple[re.Pattern[str], ...]
    allowed: frozenset[Operation]
    segments: tuple[re.Pattern[str] | None, ...]
    """One for each segment of the glob; None for ``**``."""


def _rules_allow(rules: tuple[ScopedRule, ...], operation: Operation, path: Path) -> bool:
    """Evaluates rules top to bottom: the first that matches decides; none denies.

    Directories above a scoped path may be read and listed, so that a client can walk down to it; a
    rule that names such a directory itself comes first.
    """
    text = format_path(path)
    compiled = _compile_rules(rules)
    for rule in compiled:
        if rule.matches.fullmatch(text):
            if operation in rule.allowed:
                return True
            break
    else:
        if operation in _ANCESTOR_OPERATIONS:
            return any(
                rule.allowed and any(prefix.fullmatch(text) for prefix in rule.leads_to) for rule in compiled
            )
    return False


def _rules_allow_below(rules: tuple[ScopedRule, ...], operation: Operation, path: Path) -> bool:
    """Whether the rules allow an operation on a path and on everything that may lie below it.

    The first rule that matches all of it decides. Rules before that one may match a part only if they allow
    the operation.
    """
    text = format_path(path)
    for rule in _compile_rules(rules):
        if rule.segments[-1:] == (None,) and rule.matches.fullmatch(text):
            return operation in rule.allowed
        if operation not in rule.allowed and _may_fit_below(rule.segments, path):
            return False
    return False


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


@lru_cache(maxsize=4096)
def _compile_rules(rules: tuple[ScopedRule, ...]) -> tuple[_CompiledRule, ...]:
    return tuple(_compile_rule(rule) for rule in rules)


def _compile_rule(rule: ScopedRule) -> _CompiledRule:
    segments = [segment for segment in rule.glob.split("/") if segment and segment != "."]
    # A malformed flags string allows nothing: fail closed.
    allowed = parse_flags(rule.flags) or frozenset()
    prefixes: list[re.Pattern[str]] = []
    for count in range(len(segments)):
        # From "**" on every directory may lead to a match, and what lies below "**" matches anyway.
        prefixes.append(_compile_glob(segments[:count]))
        if segments[count] == "**":
            if count + 1 < len(segments):
                prefixes.append(_compile_glob([*segments[:count], "**"]))
            break
    each = tuple(
        None if segment == "**" else re.compile(segment_expression(segment, classes=False))
        for segment in segments
    )
    return _CompiledRule(_compile_glob(segments), tuple(prefixes), allowed, each)


def _compile_glob(segments: list[str]) -> re.Pattern[str]:
    """A path glob as a pattern over absolute paths; no glob makes it slow.

    ``*`` and ``?`` stay within a segment; ``**`` as a segment takes any number of them, and at the end
    of a glob also none, so that ``/a/**`` holds ``/a``. What is between two ``**`` is an atomic group: the
    first place where it fits leaves most to what follows.
    """
    if not segments:
        return re.compile("/")
    first, *runs = _split_at_any_depth(segments)
    if not runs:
        return re.compile(first)
    middle = "".join(f"(?>(?:/[^/]++)*?{run}(?=/|\\Z))" for run in runs[:-1] if run)
    pattern = f"{first}{middle}(?:/[^/]++)*{runs[-1]}"
    # Only "**" segments match the root too, whose text is "/".
    if all(segment == "**" for segment in segments):
        pattern = f"/|{pattern}"
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
