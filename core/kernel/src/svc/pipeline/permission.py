"""May this identity do this to this path? ``permits`` decides, for every route, listing and event.

Root may do everything; everyone else may do what the rights of the user grant, and silence denies. The rules
of a scoped key then narrow what is left, root's too. A share key has no user: its rules are all it has.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from svc.globs import PathGlob
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
    glob: PathGlob
    leads_to: tuple[PathGlob, ...]
    allowed: frozenset[Operation]


def _rules_allow(rules: tuple[ScopedRule, ...], operation: Operation, path: Path) -> bool:
    """Evaluates rules top to bottom: the first that matches decides; none denies.

    Directories above a scoped path may be read and listed, so that a client can walk down to it; a
    rule that names such a directory itself comes first.
    """
    text = format_path(path)
    compiled = _compile_rules(rules)
    for rule in compiled:
        if rule.glob.matches(text):
            if operation in rule.allowed:
                return True
            break
    else:
        if operation in _ANCESTOR_OPERATIONS:
            return any(
                rule.allowed and any(prefix.matches(text) for prefix in rule.leads_to) for rule in compiled
            )
    return False


def _rules_allow_below(rules: tuple[ScopedRule, ...], operation: Operation, path: Path) -> bool:
    """Whether the rules allow an operation on a path and on everything that may lie below it.

    The first rule that matches all of it decides. Rules before that one may match a part only if they allow
    the operation.
    """
    text = format_path(path)
    for rule in _compile_rules(rules):
        if rule.glob.covers(text):
            return operation in rule.allowed
        if operation not in rule.allowed and rule.glob.may_match_below(path):
            return False
    return False


@lru_cache(maxsize=4096)
def _compile_rules(rules: tuple[ScopedRule, ...]) -> tuple[_CompiledRule, ...]:
    return tuple(_compile_rule(rule) for rule in rules)


def _compile_rule(rule: ScopedRule) -> _CompiledRule:
    segments = [segment for segment in rule.glob.split("/") if segment and segment != "."]
    # A malformed flags string allows nothing: fail closed.
    allowed = parse_flags(rule.flags) or frozenset()
    prefixes: list[PathGlob] = []
    for count in range(len(segments)):
        # From "**" on every directory may lead to a match, and what lies below "**" matches anyway.
        prefixes.append(PathGlob(segments[:count]))
        if segments[count] == "**":
            if count + 1 < len(segments):
                prefixes.append(PathGlob([*segments[:count], "**"]))
            break
    return _CompiledRule(PathGlob(segments), tuple(prefixes), allowed)
