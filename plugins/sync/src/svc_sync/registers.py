"""The register of a path: which writes of it stand beside each other, and which were replaced.

A write has a *dot*: its virtual time and its writer. A register keeps the writes that nobody replaced who saw
them, and for each writer the latest time that it has seen here. So two registers can tell, without any
history, whether one replaced what the other holds. Time picks winners; it never decides what was replaced.

A path without a register is stable: all members know what stands there, and the tree alone says it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from svc.plugin import Entry
from svc_sync.clock import vt_of
from svc_sync.values import CONTENT, Value, alike, rank

__all__ = [
    "RESTATED_VT",
    "STABLE",
    "Dot",
    "Register",
    "Row",
    "Rule",
    "Version",
    "covers",
    "is_known",
    "join",
    "join_rows",
    "park",
    "resolve",
    "restate",
    "winner",
    "write",
]

Row = Mapping[int, int]
"""For each writer a virtual time: everything that it wrote up to then."""


class Dot(NamedTuple):
    """One write of one path.

    Attributes:
        vt: its virtual time.
        writer: who wrote it; one life of one node's data.
    """

    vt: int
    writer: int


STABLE = Dot(0, 0)
"""The dot of a stable value that stands in a register again, because its own was forgotten."""


RESTATED_VT = 1
"""The virtual time under which a node that joins anew states a stable value again, so that all hear of it."""


class Rule(Enum):
    """Who wins among writes that do not know of each other, and what becomes of the others."""

    KEEP_LOSERS = "keep_losers"
    """Content wins over a deletion, then the later. Losers are conflicts. Files, snapshots, forks."""
    LAST_WRITER = "lww"
    """The later wins, and losers are forgotten. System data."""
    REMOVAL_WINS = "remove_wins"
    """As LAST_WRITER, but a removal wins over any change. What gives rights: keys, grants, members."""


class Version(Struct, frozen=True, gc=False):
    """A write that nobody replaced.

    Attributes:
        value: what was written.
        parked: whether it lost, and somebody wrote past it: it never wins again.
        fresh: whether nothing stood at the path before.
    """

    value: Value
    parked: bool = False
    fresh: bool = False


class Register(Struct, frozen=True):
    """What is known of a path that some member may not know yet.

    Attributes:
        context: for each writer the latest of its writes that was ever seen here.
        versions: the writes that were not replaced, by their dots. At least one is not parked.
    """

    context: dict[int, int]
    versions: dict[Dot, Version]


def join_rows(a: Row, b: Row) -> dict[int, int]:
    """Returns what two rows know together."""
    joined = dict(a)
    for writer, vt in b.items():
        if vt > joined.get(writer, -1):
            joined[writer] = vt
    return joined


def join(a: Register | None, b: Register | None, horizon: Row) -> Register | None:
    """Returns what two registers of one path know together. Commutative, associative, idempotent.

    Args:
        a: None where the path has none.
        b: the same.
        horizon: what all members know. A register without one of the writes below it has replaced that write.

    A register that begins with a stable value (``STABLE``) cannot name its write. Where the other still holds
    that write, it loses its dot there too; where the other does not, it was replaced there.
    """
    if a is None or b is None or a is b:
        return a if b is None else b
    versions: dict[Dot, Version] = {}
    for one, other in ((a, b), (b, a)):
        nameless = None if STABLE in one.versions else other.versions.get(STABLE)
        for dot, version in one.versions.items():
            twin = other.versions.get(dot)
            if twin is not None:
                versions[dot] = park(version) if twin.parked else version
            elif nameless is not None and nameless.value == version.value and covers(horizon, dot):
                same = versions.get(STABLE, nameless)
                versions[STABLE] = park(same) if version.parked else same
            elif dot != STABLE and not covers(other.context, dot) and not covers(horizon, dot):
                versions[dot] = version
    return Register(join_rows(a.context, b.context), versions)


def winner(register: Register, rule: Rule = Rule.KEEP_LOSERS) -> tuple[Dot, Version]:
    """Returns the write that counts: of those not parked the first by the rule, then the later one.

    A stable value has lost its virtual time, also one that was restated. The time of a file stands for it;
    any other is the earliest. It yields to a later deletion: whoever deleted it may have seen it.
    """
    standing = [(dot, version) for dot, version in register.versions.items() if not version.parked]
    deleted = [dot.vt for dot, version in standing if version.value is None]
    if deleted:
        standing = [one for one in standing if not _was_deleted(*one, max(deleted))]
    return max(standing, key=lambda item: (_precedence(item[1].value, rule), _time(*item), item[0]))


def write(
    register: Register | None, dot: Dot, value: Value, shown: Value, rule: Rule = Rule.KEEP_LOSERS
) -> Register:
    """Returns the register after a write on this node.

    Args:
        register: as it was.
        dot: of the write.
        value: what was written.
        shown: what stood at the path until then; None also where a directory with content did.
        rule: of the path. Without losers to keep, a write replaces everything.

    What was shown, what says the same, deletions and directories are replaced. Losers stay, parked.
    """
    before = register or Register({}, {})
    versions = {}
    if rule is Rule.KEEP_LOSERS:
        versions = {
            old: park(version)
            for old, version in before.versions.items()
            if rank(version.value) == CONTENT
            and not alike(version.value, value)
            and not alike(version.value, shown)
        }
    stood = any(version.value is not None for version in before.versions.values())
    versions[dot] = Version(value, fresh=value is not None and shown is None and not stood)
    return Register(join_rows(before.context, {dot.writer: dot.vt}), versions)


def resolve(register: Register, dot: Dot, value: Value) -> Register:
    """Returns the register after somebody chose a value: all other versions are gone.

    Args:
        register: as it was.
        dot: of this resolution. It always has one of its own: otherwise a loser that two members resolve in
            different ways, or that arrives once more, would stand beside the choice again.
        value: the choice.
    """
    return Register(join_rows(register.context, {dot.writer: dot.vt}), {dot: Version(value)})


def restate(value: Value) -> Register:
    """Returns a register for a stable value, so that something can stand beside it."""
    return Register({}, {STABLE: Version(value)})


def is_known(register: Register, row: Row) -> bool:
    """Whether somebody who knows a row has merged everything that a register has seen."""
    return all(row.get(writer, -1) >= vt for writer, vt in register.context.items())


def covers(row: Row, dot: Dot) -> bool:
    """Whether who knows a row knows a write."""
    return row.get(dot.writer, -1) >= dot.vt


def park(version: Version) -> Version:
    """Returns a version as one that never wins again."""
    return version if version.parked else Version(version.value, True, version.fresh)


def _precedence(value: Value, rule: Rule) -> int:
    if rule is Rule.KEEP_LOSERS:
        return rank(value)
    return int(rule is Rule.REMOVAL_WINS and value is None)


def _was_deleted(dot: Dot, version: Version, deletion: int) -> bool:
    """Whether a value without a time of its own may have been seen by whoever deleted it."""
    if dot.vt > RESTATED_VT or version.value is None:
        return False
    return not isinstance(version.value, Entry) or _time(dot, version) < deletion


def _time(dot: Dot, version: Version) -> int:
    if dot.vt > RESTATED_VT:
        return dot.vt
    return vt_of(version.value.updated_ms) if isinstance(version.value, Entry) else 0
