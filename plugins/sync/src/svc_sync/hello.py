"""How a meeting of two nodes is judged, before any data is exchanged: one table, read from the top."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from msgspec import Struct

from svc_sync.cluster import Cluster, Head, Member, covers_row
from svc_sync.registers import Row

__all__ = ["DECISIONS", "MAXIMUM_OFFSET_MS", "PROTOCOL", "Hello", "Meeting", "Verdict", "judge"]

PROTOCOL = 1
MAXIMUM_OFFSET_MS = 30_000


class Verdict(Enum):
    """What follows from a hello."""

    ACCEPT = "accept"
    OTHER_PROTOCOL = "other_protocol"
    OTHER_CLUSTER = "other_cluster"
    MY_OWN_WRITER = "my_own_writer"
    CLOCKS_APART = "clocks_apart"
    I_AM_STALE = "i_am_stale"
    THEY_ARE_STALE = "they_are_stale"


class Hello(Struct, frozen=True):
    """What a node says of itself.

    Attributes:
        protocol: the version of the exchange that it speaks.
        cluster_id: of its cluster.
        member: itself.
        known: its own row.
        cluster: what it knows of the members.
    """

    protocol: int
    cluster_id: str
    member: Member
    known: Row
    cluster: Cluster


class Meeting(Struct, frozen=True):
    """Two hellos, and what only this node can tell.

    Attributes:
        mine: what this node says.
        theirs: what the other says.
        offset_ms: how far the other's clock is ahead.
        log_holds: whether the log of this node holds a commit that the other has seen of it.
    """

    mine: Hello
    theirs: Hello
    offset_ms: int
    log_holds: Callable[[Head], bool]


def judge(meeting: Meeting) -> Verdict:
    """Returns the verdict of the first line of ``DECISIONS`` that applies; each node judges for itself."""
    for applies, verdict in DECISIONS:
        if applies(meeting):
            return verdict
    return Verdict.ACCEPT


def _other_protocol(meeting: Meeting) -> bool:
    return meeting.mine.protocol != meeting.theirs.protocol


def _other_cluster(meeting: Meeting) -> bool:
    return meeting.mine.cluster_id != meeting.theirs.cluster_id


def _same_writer(meeting: Meeting) -> bool:
    """The database was copied, and both copies run."""
    return meeting.mine.member.writer == meeting.theirs.member.writer


def _clocks_apart(meeting: Meeting) -> bool:
    return abs(meeting.offset_ms) > MAXIMUM_OFFSET_MS


def _log_was_put_back(meeting: Meeting) -> bool:
    """They have seen a commit of mine that my log does not hold: it is an older copy."""
    head = meeting.theirs.cluster.heads.get(meeting.mine.member.writer)
    return head is not None and not meeting.log_holds(head)


def _cannot_follow(one: Hello, other: Hello) -> bool:
    """Whether a node lacks what the other counts on it to know, or has forgotten."""
    writer = one.member.writer
    if writer in other.cluster.removed:
        return True
    if writer in other.cluster.members:
        return not covers_row(one.known, other.cluster.rows[writer])
    return not covers_row(one.known, other.cluster.floor())


def _i_cannot_follow(meeting: Meeting) -> bool:
    return _cannot_follow(meeting.mine, meeting.theirs)


def _they_cannot_follow(meeting: Meeting) -> bool:
    return _cannot_follow(meeting.theirs, meeting.mine)


DECISIONS: tuple[tuple[Callable[[Meeting], bool], Verdict], ...] = (
    (_other_protocol, Verdict.OTHER_PROTOCOL),
    (_other_cluster, Verdict.OTHER_CLUSTER),
    (_same_writer, Verdict.MY_OWN_WRITER),
    (_clocks_apart, Verdict.CLOCKS_APART),
    (_log_was_put_back, Verdict.I_AM_STALE),
    (_i_cannot_follow, Verdict.I_AM_STALE),
    (_they_cannot_follow, Verdict.THEY_ARE_STALE),
)
"""Whether something applies, and what then: who is stale joins anew."""
