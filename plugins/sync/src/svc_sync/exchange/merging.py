"""One transaction: registers, the tree that follows from them, what is known, and the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from svc.errors import Conflict, NotFound, PreconditionFailed
from svc.plugin import (
    Database,
    Entry,
    EntryKind,
    Hash,
    Path,
    StoredContent,
    Transaction,
    same_entry,
)
from svc_sync.exchange.commits import Snapshot, own_row
from svc_sync.exchange.documents import put_documents
from svc_sync.exchange.losers import LOSERS, Losers, holding_losers, keep_losers, losers_of
from svc_sync.exchange.origins import Origins
from svc_sync.exchange.reading import directory_of
from svc_sync.exchange.records import ACTOR, State, put_state
from svc_sync.exchange.references import Planned, plan_references, put_references
from svc_sync.exchange.store import put_registers
from svc_sync.exchange.trees import FetchTree, has_version, refuse_tree
from svc_sync.exchange.users import Write, WriteUsers, put_users
from svc_sync.registers import Dot, Register
from svc_sync.scopes import REFERENCES, SYSTEM, is_of_user
from svc_sync.tree import Application, Leaf, apply, value_of
from svc_sync.values import Directory, Value

__all__ = ["Fetch", "Told", "commit_registers", "put_value"]

Fetch = Callable[[Path, Entry], StoredContent]
"""Brings the content of a file that this database does not hold."""


class Told(Struct, frozen=True):
    """What came with registers.

    Attributes:
        users: who made writes that are new here.
        source: the node that told of the registers; None: this one.
    """

    users: Mapping[Write, str] = {}
    source: int | None = None


def commit_registers(
    database: Database,
    snapshot: Snapshot,
    changed: Mapping[Path, Register],
    state: State,
    fetch: Fetch,
    fetch_tree: FetchTree = refuse_tree,
    *,
    told: Told | None = None,
    actor: str | None = ACTOR,
) -> list[Path]:
    """Stores registers that changed and brings the tree to what they say; blocks.

    Returns the paths at which something may be shown or lose since.

    Args:
        database: the database.
        snapshot: the state that was changed.
        changed: the registers.
        state: the node's state as it shall be.
        fetch: called for contents that are not here.
        fetch_tree: called for trees of snapshots and forks that are not here.
        told: what came with the registers; None: this node changes them.
        actor: whom the log names for what this node does.

    Raises:
        PreconditionFailed: somebody changed the state, or a path that would be changed: stamp and try again.
        NotFound: who has a content that is not here has it no more.
    """
    of_user = {path: register for path, register in changed.items() if is_of_user(path)}
    edits = apply(snapshot.tree, of_user, lambda path: changed.get(path) or snapshot.registers.get(path))
    registers = {**changed, **edits.restated}
    losers = Losers(database)
    contents = _Contents(snapshot, losers, fetch)
    affected = _affected(snapshot, {**of_user, **edits.restated}, edits)
    lost = _losers(snapshot, affected, edits)
    new = {place: value for place, value in lost.items() if losers.at(*place) is None}
    keep_losers(database, {place: (value, contents.of(place[0], value)) for place, value in new.items()})
    held = holding_losers(database, lost)
    told = told or Told()
    after = own_row(database, snapshot.node, replace(state, is_level=state.is_level and not registers))
    refs = _planned_references(database, snapshot, changed, after, fetch_tree)
    if not registers and not refs and after == snapshot.state:
        return []
    ready = {path: contents.of(path, value) for path, value in edits.put if isinstance(value, Entry)}
    origins = Origins(after.cluster, affected, WriteUsers(database.system(), told.users), told.source)
    with database.transaction(actor=actor, message="merge", checks_contents=False) as changes:
        _edit(changes, snapshot, edits, ready, origins)
        put_documents(changes, snapshot.documents, _of_system(changed))
        put_references(changes, database.system(), refs)
        _put_registers(changes, snapshot, registers, told.users)
        put_state(changes, after, snapshot.entry)
        _commit(changes, held)
    return list(affected)


def _put_registers(
    changes: Transaction,
    snapshot: Snapshot,
    registers: Mapping[Path, Register],
    users: Mapping[Write, str],
) -> None:
    put_users(changes, _new_users(users, registers))
    put_registers(changes, snapshot.registers, registers)


def _commit(changes: Transaction, losers: Hash | None) -> None:
    try:
        if losers is not None:
            changes.set_ref(LOSERS, losers, expected=losers)
        changes.commit()
    except (Conflict, NotFound) as error:
        raise PreconditionFailed("A path was changed meanwhile.", **error.details) from error


def _affected(
    snapshot: Snapshot, changed: Mapping[Path, Register], edits: Application
) -> dict[Path, Register]:
    """A file can be displaced, or come back, although its own register did not change."""
    affected = dict(changed)
    for path in (*edits.removed, *(path for path, _ in edits.put)):
        register = snapshot.registers.get(path)
        if register is not None:
            affected.setdefault(path, register)
    return affected


def _of_system(changed: Mapping[Path, Register]) -> list[tuple[Path, Register]]:
    return [(path, register) for path, register in changed.items() if path[:2] == SYSTEM]


def _planned_references(
    database: Database,
    snapshot: Snapshot,
    changed: Mapping[Path, Register],
    state: State,
    fetch_tree: FetchTree,
) -> list[tuple[Planned, Hash | None]]:
    """Refs that change, each with its root here."""
    references = snapshot.references
    has_other_names = state.cluster.members != snapshot.state.cluster.members
    if not has_other_names and not any(path[:2] == REFERENCES for path in changed):
        return []
    found: list[tuple[Planned, Hash | None]] = []
    for one in plan_references(references, snapshot.registers, changed, state.cluster):
        local = None
        if one.root is not None:
            local = references.local_root(one.root)
            if local is None and has_version(database, one.root):
                local = one.root
            if local is None:
                bases = [] if one.before is None else [one.before.local]
                bases += [snapshot.tree.version.root]
                bases += [other.root for other in references.noted(one.kind).values()]
                local = fetch_tree(one.root, bases)
        found.append((one, local))
    return found


class _Contents:
    """Finds contents: in the tree, among the losers, or elsewhere."""

    def __init__(self, snapshot: Snapshot, losers: Losers, fetch: Fetch) -> None:
        self._tree = snapshot.tree
        self._losers = losers
        self._fetch = fetch

    def of(self, path: Path, value: Entry) -> Entry | StoredContent:
        """Returns an entry with the value's times and this database's record, or what was stored."""
        if value.kind is not EntryKind.FILE or value.size == 0:
            return value
        for found in (self._tree.entry(path), self._losers.find(path, value.hash)):
            is_file = found is not None and found.kind is EntryKind.FILE
            if found is not None and is_file and (found.hash, found.size) == (value.hash, value.size):
                return replace(value, record=found.record)
        return self._fetch(path, value)


def _losers(
    snapshot: Snapshot, registers: Mapping[Path, Register], edits: Application
) -> dict[tuple[Path, Dot], Entry]:
    put, removed = dict(edits.put), set(edits.removed)
    found: dict[tuple[Path, Dot], Entry] = {}
    for path, register in registers.items():
        shown: Leaf = put[path] if path in put else None if path in removed else snapshot.tree.leaf(path)
        found.update({(path, dot): value for dot, value in losers_of(register, value_of(shown))})
    return found


def _edit(
    changes: Transaction,
    snapshot: Snapshot,
    edits: Application,
    ready: Mapping[Path, Entry | StoredContent],
    origins: Origins,
) -> None:
    """What has one origin stands together; what goes stands before what comes, directories behind files."""
    gone = set()
    leaves = {path: snapshot.tree.leaf(path) for path in edits.removed}
    files = [path for path, leaf in leaves.items() if isinstance(leaf, Entry)]
    for origin, path in (*origins.sorted(files), *((origins.of(path), path) for path in edits.removed)):
        if path not in gone:
            with changes.merging(origin):
                changes.delete(path, condition=same_entry(snapshot.tree.entry(path)))
            gone.add(path)
    values = dict(edits.put)
    for origin, path in origins.sorted(values):
        before = None if path in gone else snapshot.tree.entry(path)
        with changes.merging(origin):
            put_value(changes, path, values[path], lambda at, _: ready[at], before)


def _new_users(users: Mapping[Write, str], registers: Mapping[Path, Register]) -> dict[Write, str]:
    """Of the users that were told those of writes that stand in registers here."""
    dots = ((path, dot) for path, register in registers.items() for dot in register.versions)
    wanted = {write for path, dot in dots for write in (Write.of(dot), Write.of(dot, path))}
    return {write: user for write, user in users.items() if write in wanted}


def put_value(
    changes: Transaction,
    path: Path,
    value: Value,
    content_of: Callable[[Path, Entry], Entry | StoredContent],
    before: Entry | None,
) -> None:
    """Puts what a register says; ``before`` is what must stand there."""
    condition = same_entry(before)
    if isinstance(value, Directory):
        changes.put_entry(path, directory_of(value), condition=condition)
        return
    assert isinstance(value, Entry)
    content = content_of(path, value)
    if isinstance(content, Entry):
        changes.put_entry(path, content, condition=condition)
        return
    times: dict[str, Any] = {"created_ms": value.created_ms, "updated_ms": value.updated_ms}
    changes.put(path, content, content_type=value.content_type, condition=condition, **times)
