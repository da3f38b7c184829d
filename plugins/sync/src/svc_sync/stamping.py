"""How what a node committed itself becomes writes of registers."""

from __future__ import annotations

from svc_sync.registers import Dot, Register, Rule, winner, write
from svc_sync.tree import FULL, Leaf, value_of
from svc_sync.values import Directory, Value, rank

__all__ = ["stamp", "stamp_system"]


def stamp(register: Register | None, dot: Dot, old: Leaf, new: Leaf) -> Register | None:
    """Returns the register of a path after commits of this node; None when nothing is to be written.

    Args:
        register: of the path, None where it has none.
        dot: of the write: the virtual time of the last commit that touched the path.
        old: what stood there when registers and tree last agreed.
        new: what stands there now.

    A directory with content is no value. It only replaces a file, as a deletion of it.
    """
    if new == old:
        return None
    if new is not None and new is not FULL:
        return write(register, dot, new, value_of(old))
    stood = winner(register)[1].value if register is not None else _content_of(old)
    if stood is None or (new is FULL and (old is FULL or rank(stood) == 1)):
        return None
    return write(register, dot, None, value_of(old))


def stamp_system(register: Register | None, dot: Dot, old: Value, new: Value, rule: Rule) -> Register | None:
    """Returns the register of a document or reference after commits of this node; None for no write."""
    return None if new == old else write(register, dot, new, old, rule)


def _content_of(leaf: Leaf) -> Value:
    return None if leaf is FULL or type(leaf) is Directory else leaf
