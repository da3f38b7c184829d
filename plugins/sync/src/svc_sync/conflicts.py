"""Conflicts: not recorded, they follow from the registers. So every node lists the same ones.

A register without one can be forgotten as soon as all members know it.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from svc_sync.registers import Dot, Register, Row, Rule, is_known, winner
from svc_sync.tree import Leaf, value_of
from svc_sync.values import CONTENT, Value, alike, rank

__all__ = ["Conflict", "ConflictKind", "conflicts_of", "is_settled"]


class ConflictKind(Enum):
    """What two writes did that did not know of each other."""

    MODIFY_MODIFY = "modify_modify"
    MODIFY_DELETE = "modify_delete"
    ADD_ADD = "add_add"


class Conflict(Struct, frozen=True):
    """A write that lost and that nobody replaced.

    Attributes:
        kind: what met.
        dot: of the loser.
        loser: what it wrote; None for a deletion.
        winner_dot: of what counts; the loser's own where a directory with content keeps a file from its path.
        winner: what stands at the path; None for a directory with content.
    """

    kind: ConflictKind
    dot: Dot
    loser: Value
    winner_dot: Dot
    winner: Value


def conflicts_of(register: Register, shown: Leaf) -> list[Conflict]:
    """Returns the conflicts of a path in the order of their dots.

    Args:
        register: of the path.
        shown: what stands there.

    Every content that is not shown is a loser: also one that won, but stands at the path of a directory.
    Deletions and empty directories beside a file that won are listed until somebody writes.
    """
    first, best = winner(register)
    found = []
    for dot, version in sorted(register.versions.items()):
        value = version.value
        if rank(value) == CONTENT:
            if alike(value, value_of(shown)):
                continue
            both_new = version.fresh and best.fresh and first != dot
            kind = ConflictKind.ADD_ADD if both_new else ConflictKind.MODIFY_MODIFY
        elif rank(best.value) == CONTENT and not version.parked:
            kind = ConflictKind.MODIFY_DELETE
        else:
            continue
        found.append(Conflict(kind, dot, value, first, value_of(shown)))
    return found


def is_settled(register: Register, horizon: Row, shown: Leaf, rule: Rule = Rule.KEEP_LOSERS) -> bool:
    """Whether a register can be forgotten: all members know it, and the tree alone says the same.

    Args:
        register: of a path.
        horizon: what all members that take the path know.
        shown: what stands at the path.
        rule: of the path; without losers to keep there are no conflicts.

    Conflicts, displaced files and explicit empty directories stay. Equal content, and two deletions, go.
    """
    value = winner(register, rule)[1].value
    if rank(value) == 1 or (value is not None and value != shown):
        return False
    if not is_known(register, horizon):
        return False
    return rule is not Rule.KEEP_LOSERS or not conflicts_of(register, shown)
