"""Conflicts as they are listed, read and resolved."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from svc.errors import Conflict as Conflicting
from svc.errors import InvalidInput, NotFound
from svc.plugin import Database, Entry, Path, StoredContent, Version, attempt, format_path
from svc_sync.clock import milliseconds_of, next_vt
from svc_sync.conflicts import Conflict, conflicts_of
from svc_sync.exchange.commits import Snapshot, stamp
from svc_sync.exchange.losers import Losers
from svc_sync.exchange.merging import Told, commit_registers
from svc_sync.exchange.origins import nodes_of
from svc_sync.exchange.pulling import tidy_losers
from svc_sync.exchange.records import ACTOR, now_ms
from svc_sync.exchange.users import Write
from svc_sync.registers import Dot, resolve
from svc_sync.tree import FULL, value_of
from svc_sync.values import Value

__all__ = [
    "Found",
    "Resolved",
    "detected_ms",
    "find_conflict",
    "list_conflicts",
    "loser_content",
    "name_of",
    "resolve_conflict",
]

_LOOKED_AT = 10_000
_BEHIND_SYSTEM: Path = ("", "\U0010ffff")
"""Registers of the system tree stand before all others, and list no conflicts."""


class Found(Struct, frozen=True):
    """A conflict of a path, and which nodes wrote what met."""

    path: Path
    conflict: Conflict
    winner_node: int | None
    loser_node: int | None


class Resolved(Struct, frozen=True):
    """What a resolution did: what stands at the path now."""

    path: Path
    value: Value
    version: bytes


def list_conflicts(database: Database, after: Path | None, limit: int) -> tuple[list[Found], Path | None]:
    """Returns conflicts in the order of paths, and behind which path there may be more; blocks, may commit.

    Args:
        database: the database.
        after: begins behind this path.
        limit: how many paths with conflicts are listed at most.
    """
    snapshot = stamp(database)
    found: list[Found] = []
    paths = 0
    for count, (path, register) in enumerate(snapshot.registers.items(after or _BEHIND_SYSTEM)):
        rows = conflicts_of(register, snapshot.tree.leaf(path))
        found += [_found(snapshot, path, row) for row in rows]
        paths += bool(rows)
        if paths == limit or count == _LOOKED_AT:
            return found, path
    return found, None


def find_conflict(database: Database, path: Path, name: str | None = None) -> tuple[Snapshot, Found]:
    """Returns the conflict of a path: the one of a version, or the latest.

    Raises:
        NotFound: the path has none, or none of this version.
    """
    snapshot = stamp(database)
    register = snapshot.registers.get(path)
    rows = [] if register is None else conflicts_of(register, snapshot.tree.leaf(path))
    wanted = [row for row in rows if name is None or name_of(row.dot) == name]
    if not wanted:
        raise NotFound("The path has no such conflict.", path=format_path(path))
    return snapshot, _found(snapshot, path, wanted[-1])


def loser_content(database: Database, found: Found) -> tuple[Version, Entry]:
    """Returns the content that lost, and the version to read it from.

    Raises:
        NotFound: what lost is a deletion or a directory; or the content has gone meanwhile.
    """
    losers = Losers(database)
    entry = losers.at(found.path, found.conflict.dot)
    if entry is None or losers.root is None:
        raise NotFound("What has lost has no content.", path=format_path(found.path))
    return database.version_of(losers.root), entry


def resolve_conflict(
    database: Database, path: Path, *, pick_loser: bool, name: str | None, actor: str | None = None
) -> Resolved:
    """Chooses a version: all others of the path are gone, here and, with the next pulls, on every node.

    Args:
        database: the database.
        path: of the conflict.
        pick_loser: whether the loser is chosen; else what stands there stays.
        name: which loser, where there are several; None: the latest.
        actor: who chooses.

    Raises:
        NotFound: the path has no such conflict.
        Conflict: the loser can't stand there: a file above it, or a directory that holds something.
    """
    touched: list[Path] = []

    def once() -> Resolved:
        snapshot, found = find_conflict(database, path, name)
        register = snapshot.registers.get(path)
        assert register is not None
        shown = snapshot.tree.leaf(path)
        value = value_of(shown)
        if pick_loser:
            value = found.conflict.loser
            if value is not None:
                _require_room(snapshot, path)
        vt = next_vt(now_ms(), snapshot.state.vt)
        writer = snapshot.node.writer
        resolved = resolve(register, Dot(vt, writer), value)
        state = replace(snapshot.state, vt=vt, known={**snapshot.state.known, writer: vt})
        told = Told({} if actor is None else {Write(vt, writer): actor})
        touched[:] = commit_registers(
            database, snapshot, {path: resolved}, state, _refuse, told=told, actor=actor or ACTOR
        )
        return Resolved(path, value, database.head().root)

    done = attempt(once, "The path")
    tidy_losers(database, touched)
    return done


def name_of(dot: Dot) -> str:
    """Returns the text that names a version in URLs."""
    return f"{dot.vt:016x}-{dot.writer:016x}"


def detected_ms(found: Found) -> int:
    """Returns the time of the later of the two writes: nobody could see a conflict before."""
    return milliseconds_of(max(found.conflict.dot.vt, found.conflict.winner_dot.vt))


def _found(snapshot: Snapshot, path: Path, row: Conflict) -> Found:
    nodes = nodes_of(snapshot.state.cluster)
    return Found(path, row, nodes.get(row.winner_dot.writer), nodes.get(row.dot.writer))


def _require_room(snapshot: Snapshot, path: Path) -> None:
    if snapshot.tree.leaf(path) is FULL:
        raise Conflicting("A directory that holds something stands at this path.", path=format_path(path))
    for depth in range(1, len(path)):
        above = snapshot.tree.leaf(path[:depth])
        if isinstance(above, Entry):
            raise Conflicting("A file stands above this path.", path=format_path(path[:depth]))


def _refuse(path: Path, _value: Entry) -> StoredContent:
    raise InvalidInput("The content of this version is not here.", path=format_path(path))
