"""Where in the tree an identity may do something at all: whoever seeks in many files looks only there."""

from __future__ import annotations

from collections.abc import Iterable

from svc.paths import SYSTEM_NAMES, Path
from svc.pipeline.scoped_rules import compiled_rules
from svc.plugins.contracts import Identity, Operation

__all__ = ["MOST_PARTS", "Parts", "visible_parts"]

MOST_PARTS = 10_000

Parts = tuple[tuple[Path, bool], ...]
"""Paths, none below another, and whether everything at and below it is allowed."""


def visible_parts(identity: Identity, operation: Operation, path: Path) -> Parts | None:
    """Returns the parts of the tree outside of which ``identity`` may not do ``operation`` to any file.

    Decided from what was granted alone, without a look at the tree; agrees with ``permitted``. Whoever seeks
    in very many files asks here first, and then for the single files of the parts whose flag is false.

    Args:
        identity: who asks.
        operation: what for.
        path: only the part of the tree at and below it is asked for.

    Returns:
        Pairs of a path at or below ``path``, in path order, none below another, and a flag: whether the
        operation is allowed everywhere at and below that path. None: nothing is known, or there would be
        more than 10,000 parts; ask for each file.
    """
    if path and path[0] in SYSTEM_NAMES:
        return ()
    rules, rights = identity.rules, identity.rights
    by_rules: Parts | None = ((path, True),)
    if rules:
        by_rules = _outermost(compiled_rules(rules).parts(operation, path))
    if identity.is_root:
        return by_rules
    if rights is None:
        return by_rules if identity.user_id is None and rules else ()
    ask = getattr(rights, "visible_parts", None)
    by_rights: Parts | None = None if ask is None else _outermost(ask(operation, path))
    if by_rules is None or by_rights is None:
        known = by_rules if by_rights is None else by_rights
        # What the other would say is not known: no part is certain.
        return None if known is None or known == ((path, True),) else tuple((at, False) for at, _ in known)
    return _outermost(_common(by_rules, by_rights))


def _outermost(parts: Iterable[tuple[Path, bool]] | None) -> Parts | None:
    if parts is None:
        return None
    found: list[tuple[Path, bool]] = []
    for path, certain in sorted(parts):
        if not found or path[: len(found[-1][0])] != found[-1][0]:
            found.append((path, certain))
    return tuple(found) if len(found) <= MOST_PARTS else None


def _common(left: Parts, right: Parts) -> Parts:
    """What is in a part of both; certain where it is so in both."""
    known = dict(right)
    found: dict[Path, bool] = {}
    for path, certain in left:
        for depth in range(len(path) + 1):
            other = known.get(path[:depth])
            if other is not None:
                found[path] = certain and other
                break
    known = dict(left)
    for path, certain in right:
        for depth in range(len(path)):
            other = known.get(path[:depth])
            if other is not None:
                found[path] = certain and other
                break
    return tuple(found.items())
