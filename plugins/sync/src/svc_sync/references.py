"""Snapshots and forks of a cluster: a register for each name, and what the losers are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from svc.plugin import Hash
from svc_sync.registers import STABLE, Dot, Register, winner, write
from svc_sync.values import Reference, alike

__all__ = ["forget_loser", "name_of_loser", "shown_references"]

_LONGEST_KEPT = 140
"""A name has at most 200 characters: there is room for a node and a time behind so many."""


def shown_references(
    stable: Iterable[tuple[str, Hash]],
    registers: Iterable[tuple[str, Register]],
    label_of: Callable[[int], str],
) -> dict[str, tuple[Hash, str, Dot]]:
    """Returns what the names of one kind show: for each the root, and the register and write that it is of.

    Args:
        stable: names without a register, with their roots.
        registers: names with one.
        label_of: returns how a writer is called: the id of its node.

    A root that lost stands under the name with the node behind it, until somebody deletes that name. Where
    several would have one name, the later keeps it, and the others have their times behind it.
    """
    shown = {name: (root, name, STABLE) for name, root in stable}
    losers: list[tuple[str, Dot, Hash]] = []
    for name, register in registers:
        best, version = winner(register)
        if isinstance(version.value, Reference):
            shown[name] = (version.value.root, name, best)
        for dot, loser in register.versions.items():
            if isinstance(loser.value, Reference) and dot != best and not alike(loser.value, version.value):
                losers.append((name, dot, loser.value.root))
    for name, dot, root in sorted(losers, key=lambda item: (item[0], item[1]), reverse=True):
        derived = name_of_loser(name, label_of(dot.writer))
        if derived in shown:
            derived = f"{derived}~{dot.vt:x}-{dot.writer:x}"
        shown[derived] = (root, name, dot)
    return shown


def name_of_loser(name: str, label: str) -> str:
    """Returns the name under which a root that lost stands: ``<name>~<node>``."""
    return f"{name[:_LONGEST_KEPT]}~{label}"


def forget_loser(register: Register, loser: Dot, dot: Dot) -> Register:
    """Returns the register of a name after somebody deleted or moved what stood under a loser's name.

    Args:
        register: of the name that it lost.
        loser: its dot.
        dot: of this write, which says again what won.
    """
    value = winner(register)[1].value
    rest = {one: version for one, version in register.versions.items() if one != loser}
    return write(Register(register.context, rest), dot, value, value)
