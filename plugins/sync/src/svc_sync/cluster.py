"""What a node knows of its cluster: the members, and how much each is known to know.

A *row* says of a member what it has merged. What all members that take a path have merged there lies below
the path's *horizon*, and need not be remembered.

A horizon never goes back. Rows only grow, and a member that comes in later than others have forgotten what
it lacks is taken for removed: it has to join anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from svc.plugin import Path
from svc_sync.registers import Row, join_rows
from svc_sync.scopes import Scope

__all__ = ["Cluster", "Head", "Horizons", "Member", "covers_row", "learn", "row_after_pull"]


class Member(Struct, frozen=True):
    """One life of a node's data in the cluster.

    Attributes:
        writer: names that life; 63 random bits.
        node_id: what people see; it stays when the node takes a new writer.
        scope: globs of what it takes; None for everything.
        former: writers of its former lives, whose writes it has all merged.
    """

    writer: int
    node_id: int
    scope: tuple[str, ...] | None = None
    former: tuple[int, ...] = ()


class Head(Struct, frozen=True):
    """The last commit of a writer that somebody has merged. A log without it is an older copy.

    Attributes:
        vt: its virtual time.
        sequence: its number in the writer's log; 0 where ``identity`` tells it to the writer alone.
        identity: what tells it from another commit of that number.
    """

    vt: int
    sequence: int
    identity: bytes


class Cluster(Struct, frozen=True):
    """Members, what they know, and who was removed; it travels as a whole, with every page.

    Attributes:
        members: by writer; those who were not removed.
        removed: writers that were members. A removal is for ever.
        rows: what each member is known to have merged.
        heads: the latest known commit of each writer.
    """

    members: dict[int, Member] = {}
    removed: frozenset[int] = frozenset()
    rows: dict[int, dict[int, int]] = {}
    heads: dict[int, Head] = {}

    def with_member(self, member: Member, row: Row) -> Cluster:
        """Returns the cluster with one more member, that knows a row."""
        return self._replace(
            members={**self.members, member.writer: member},
            rows={**self.rows, member.writer: dict(row)},
        )

    def with_row(self, writer: int, row: Row, head: Head | None = None) -> Cluster:
        """Returns the cluster after a member has learned something; ``head`` is its own latest commit."""
        rows = {**self.rows, writer: join_rows(self.rows.get(writer, {}), row)}
        heads = self.heads if head is None else {**self.heads, writer: head}
        return self._replace(rows=rows, heads=heads)

    def without(self, writers: Iterable[int]) -> Cluster:
        """Returns the cluster after the removal of some."""
        removed = self.removed | set(writers)
        return self._replace(
            members={w: member for w, member in self.members.items() if w not in removed},
            removed=removed,
            rows={w: row for w, row in self.rows.items() if w not in removed},
        )

    def scope_of(self, writer: int) -> Scope:
        """Returns what a member takes; of nobody that is a member, everything."""
        member = self.members.get(writer)
        return Scope(None if member is None else member.scope)

    def floor(self) -> dict[int, int]:
        """Returns what all members without a scope know. No path has a higher horizon."""
        return _least(self.rows[writer] for writer, member in self.members.items() if member.scope is None)

    def scoped_floors(self) -> dict[int, dict[int, int]]:
        """Returns for each member with a scope what it and all without one know.

        Together with ``floor`` these tell every horizon: while they are the same, no horizon has moved.
        """
        floor = self.floor()
        return {
            writer: _least([floor, self.rows[writer]])
            for writer, member in self.members.items()
            if member.scope is not None
        }

    def _replace(self, **changes: Any) -> Cluster:
        return msgspec.structs.replace(self, **changes)


def learn(mine: Cluster, theirs: Cluster) -> Cluster:
    """Returns what two nodes know of the cluster together, as the first of them may take it.

    A member that is new here and knows less than what may be forgotten here is removed: the others have
    removed whoever vouched for it, and what it lacks may be gone. It joins anew.
    """
    floor = mine.floor()
    late = [
        writer
        for writer in theirs.members
        if writer not in mine.members and not covers_row(theirs.rows[writer], floor)
    ]
    rows, heads = dict(mine.rows), dict(mine.heads)
    for writer, row in theirs.rows.items():
        rows[writer] = join_rows(rows.get(writer, {}), row)
    for writer, head in theirs.heads.items():
        if writer not in heads or head.vt > heads[writer].vt:
            heads[writer] = head
    joined = Cluster({**theirs.members, **mine.members}, mine.removed, rows, heads)
    return joined.without({*theirs.removed, *late})


def row_after_pull(
    mine: Row, scope: Scope, other: Member, other_scope: Scope, known_first: Row
) -> dict[int, int]:
    """Returns what a node knows after the last page of a pull.

    Args:
        mine: what it knew.
        scope: what it takes.
        other: whom it pulled from.
        other_scope: what that one takes.
        known_first: what that one knew when it made the FIRST page: what came meanwhile may be missing.

    A member with a narrower scope vouches for what it wrote, in all its lives, and never for others.
    """
    if other_scope.holds(scope):
        return join_rows(mine, known_first)
    lives = {other.writer, *other.former}
    return join_rows(mine, {writer: vt for writer, vt in known_first.items() if writer in lives})


class Horizons:
    """The horizons of paths, by which members take them; each is made when it is first needed.

    Args:
        cluster: what is known; a later state needs new horizons.
    """

    __slots__ = ("_all", "_by_members", "_rows", "_scopes")

    def __init__(self, cluster: Cluster) -> None:
        self._rows = cluster.rows
        self._all = [writer for writer, member in cluster.members.items() if member.scope is None]
        self._scopes = [
            (writer, Scope(member.scope))
            for writer, member in cluster.members.items()
            if member.scope is not None
        ]
        self._by_members: dict[tuple[int, ...], Row] = {}

    def of(self, path: Path) -> Row:
        """Returns for each writer up to where all members that take the path have merged it."""
        key = tuple([writer for writer, scope in self._scopes if scope.takes(path)])
        found = self._by_members.get(key)
        if found is None:
            found = self._by_members[key] = _least(self._rows[writer] for writer in (*self._all, *key))
        return found


def covers_row(row: Row, needed: Row) -> bool:
    """Whether who knows a row knows all of another one."""
    return all(row.get(writer, -1) >= vt for writer, vt in needed.items())


def _least(rows: Iterable[Row]) -> dict[int, int]:
    some, *others = [*rows] or [{}]
    return {
        writer: min(vt, *(row[writer] for row in others)) if others else vt
        for writer, vt in some.items()
        if all(writer in row for row in others)
    }
