"""How a node becomes a member: with nothing, with data of its own, or once more after it fell behind.

A joiner takes a copy of a member's tree, registers and rows. Then, in the same transaction and before anybody
knows its new writer, it adds what it has and the cluster does not. It may give such writes any time it likes,
and gives them the time at which they were made: so they win, or lose, as if they had come in time.
"""

from __future__ import annotations

from collections.abc import Collection

from svc_sync.cluster import Cluster, Member, covers_row
from svc_sync.registers import (
    RESTATED_VT,
    STABLE,
    Dot,
    Register,
    Row,
    Rule,
    Version,
    covers,
    join_rows,
    park,
    restate,
    write,
)
from svc_sync.tree import Leaf, value_of
from svc_sync.values import CONTENT, Directory, Value, alike, rank

__all__ = ["bring", "carry_over", "may_return_through", "row_of_returned", "welcome"]


def welcome(cluster: Cluster, known: Row, joiner: Member) -> Cluster:
    """Returns the cluster as the host must know it BEFORE it gives the joiner a copy.

    Args:
        cluster: as the host knows it.
        known: the host's row; the joiner will have the same.
        joiner: the new member.

    So whoever learns what the host merges later learns of the joiner with it, and forgets nothing too early.
    """
    return cluster.with_member(joiner, known)


def bring(
    register: Register | None, shown: Leaf, value: Value, dot: Dot, *, blocked: bool
) -> Register | None:
    """Returns the register of a path after a joiner with data of its own has added it; None for no change.

    Args:
        register: of the path in the cluster; None where it has none.
        shown: what stands there in the cluster.
        value: what the joiner has there.
        dot: of the joiner's new writer.
        blocked: whether a file or link stands above the path in the cluster.

    What the cluster lacks is written; what differs is a parked loser, and is listed until it is resolved.
    """
    if value is None or alike(value, value_of(shown)):
        return None
    is_free = not blocked and (shown is None or type(shown) is Directory)
    if type(value) is Directory:
        return write(register, dot, value, None) if is_free and shown is None else None
    if register is not None and any(alike(value, one.value) for one in register.versions.values()):
        return None
    if is_free:
        return write(register, dot, value, value_of(shown))
    beside = register or restate(value_of(shown))
    return Register(
        join_rows(beside.context, {dot.writer: dot.vt}), {**beside.versions, dot: Version(value, parked=True)}
    )


def carry_over(
    theirs: Register | None,
    shown: Leaf,
    mine: Register,
    *,
    writer: int,
    known: Row,
    seen: Row,
    forgotten: Row,
    stood: Collection[Value] = (),
    distrusted: Collection[int] = (),
    rule: Rule = Rule.KEEP_LOSERS,
) -> Register | None:
    """Returns the register of a path after a node that fell behind has joined anew; None for no change.

    Args:
        theirs: the register in the cluster; None where it has none.
        shown: what stands there in the cluster.
        mine: the register that this node had.
        writer: this node's new writer.
        known: the row of the member that was copied.
        seen: the row that this node had.
        forgotten: the horizon of the path at the member that was copied. A stable value has lost its dot;
            that all below the horizon is known here, and the value is in the register no more, says that it
            was replaced here.
        stood: what has stood at the path in this node's history. A value without a dot that counts was
            replaced here, if it stood here and is in the register no more.
        distrusted: this node's old writer, if its log was put back. The cluster may know other writes of the
            same dots, so what this node knows of that writer counts for nothing, and its writes get new dots
            of the same times.
        rule: of the path. Where losers are not kept, and nobody can tell which is later, what stands in the
            cluster counts, and only a removal that wins comes beside it.
    """
    known, seen, context = [
        {writer: vt for writer, vt in row.items() if writer not in distrusted}
        for row in (known, seen, mine.context)
    ]
    there = theirs or _stable_there(shown, mine, known, rule)
    lacking = {
        dot: version
        for dot, version in mine.versions.items()
        if dot != STABLE
        and dot not in there.versions
        and (dot.writer in distrusted or not (covers(known, dot) or covers(there.context, dot)))
    }
    if not lacking:
        return None
    versions = {}
    for dot, version in there.versions.items():
        if dot == STABLE:
            twins = [one for one in mine.versions.values() if one.value == version.value]
            is_seen = covers_row(seen, forgotten)
        else:
            twins = [mine.versions[dot]] if dot in mine.versions else []
            is_seen = covers(context, dot) or covers(seen, dot)
        has_no_dot = dot == STABLE or dot.writer in distrusted
        stood_here = has_no_dot and rank(version.value) == CONTENT and version.value in stood
        if twins or not (is_seen or stood_here):
            was_passed = bool(twins) and all(one.parked for one in twins)
            versions[dot] = park(version) if was_passed else version
    versions.update(
        (Dot(dot.vt, writer) if dot.writer in distrusted else dot, version)
        for dot, version in lacking.items()
    )
    if STABLE in versions and rule is not Rule.KEEP_LOSERS:
        for dot, version in versions.items():
            wins = rule is Rule.REMOVAL_WINS and version.value is None
            versions[dot] = version if dot == STABLE or wins else park(version)
    if theirs is None and STABLE in versions:
        versions[Dot(RESTATED_VT, writer)] = versions.pop(STABLE)
    elif all(version.parked for version in versions.values()):
        versions[Dot(RESTATED_VT, writer)] = Version(value_of(shown))
    # All must hear of it, also those who know each of the writes: what was forgotten has another meaning now.
    context = join_rows(join_rows(there.context, context), {writer: RESTATED_VT})
    for dot in versions:
        if dot != STABLE:
            context = join_rows(context, {dot.writer: dot.vt})
    return Register(context, versions)


def _stable_there(shown: Leaf, mine: Register, known: Row, rule: Rule) -> Register:
    """The register of a path where it was forgotten: with the dot, if that is known here.

    Where removals win, what is not there was removed if this node has changed it, and did not make it.
    """
    for dot, version in mine.versions.items():
        if dot != STABLE and covers(known, dot) and version.value == value_of(shown):
            return Register({dot.writer: dot.vt}, {dot: Version(version.value)})
    was_removed = rule is Rule.REMOVAL_WINS and not all(one.fresh for one in mine.versions.values())
    return restate(value_of(shown)) if was_removed or value_of(shown) is not None else Register({}, {})


def may_return_through(cluster: Cluster, host_known: Row) -> bool:
    """Whether a node may join anew through a member, which must know all that is forgotten here.

    Args:
        cluster: as the node knows it.
        host_known: the row of the member.

    Otherwise something that stands in this node's tree alone would be gone. Two members that have removed
    each other, and nobody else, cannot return by themselves.
    """
    return covers_row(host_known, cluster.floor())


def row_of_returned(known: Row, seen: Row, distrusted: Collection[int] = ()) -> dict[int, int]:
    """Returns what a node knows that joined anew, with all that it carried over.

    Args:
        known: the row of the member that was copied.
        seen: the row that this node had.
        distrusted: as in ``carry_over``.
    """
    return join_rows(known, {writer: vt for writer, vt in seen.items() if writer not in distrusted})
