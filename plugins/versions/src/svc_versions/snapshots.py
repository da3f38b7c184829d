"""Snapshots: named versions that stay.

A name and what it shall stand for flow in; a ref and a small document in one commit flow out, whatever
the size of the database.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from svc.database import Database, Transaction, Version
from svc.errors import AlreadyExists, Conflict, InvalidInput, NotFound, PreconditionFailed
from svc.hashing import Hash
from svc_versions.attempts import attempt
from svc_versions.documents import (
    SnapshotDocument,
    documents,
    find_document,
    find_root,
    present_ms,
    read_state,
    references,
    same_content,
)
from svc_versions.lifecycle import require_snapshot_writes
from svc_versions.names import (
    SAFETY_PREFIX,
    SNAPSHOTS,
    document_path,
    is_automatic,
    new_name,
    normal_name,
    reference,
)
from svc_versions.roots import snapshot_names

__all__ = [
    "Snapshot",
    "add_safety_snapshot",
    "create_snapshot",
    "delete_snapshot",
    "find_snapshot",
    "list_snapshots",
    "read_snapshot",
    "rename_snapshot",
    "safety_names",
]

_GUARD = ("versions", "newest-snapshot")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot.

    Attributes:
        name: its name.
        root: root hash of the version that it names.
        created_ms: when it was made, Unix milliseconds.
        metadata: what its maker keeps with it.
        kind: ``manual`` or ``automatic``.
        created_by: who made it, if known.
        kept: of an automatic one, whether it stays as long as a manual one.
        sequence: number of the last commit before it; orders those of one millisecond.
        base_sequence: of a snapshot of a fork: number of the newest commit of HEAD whose state it holds.
    """

    name: str
    root: Hash
    created_ms: int
    metadata: dict[str, Any]
    kind: str
    created_by: str | None
    kept: bool = False
    sequence: int = 0
    base_sequence: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The snapshot as routes and commands show it."""
        return {
            "name": self.name,
            "root_hash": self.root.hex(),
            "created_at": self.created_ms,
            "metadata": self.metadata,
            "kind": self.kind,
            "created_by": self.created_by,
        }

    def document(self) -> SnapshotDocument:
        """Returns what its document says."""
        return SnapshotDocument(
            created_at=self.created_ms,
            metadata=self.metadata,
            kind=self.kind,
            created_by=self.created_by,
            kept=self.kept,
            sequence=self.sequence,
            base_sequence=self.base_sequence,
        )


def list_snapshots(database: Database) -> list[Snapshot]:
    """Returns all snapshots, newest first. Reads every document; blocks for as long as that takes."""
    _, _, system = read_state(database)
    known = documents(system, SNAPSHOTS, SnapshotDocument)
    found = [
        _snapshot(database, name, root, known.get(name))
        for name, root in references(database, system, SNAPSHOTS)
    ]
    return sorted(found, key=lambda one: (-one.created_ms, -one.sequence, one.name))


def find_snapshot(database: Database, name: str) -> Snapshot:
    """Returns a snapshot.

    Raises:
        NotFound: there is none of this name.
    """
    _, _, system = read_state(database)
    return read_snapshot(database, system, name)


def read_snapshot(database: Database, system: Version, name: str) -> Snapshot:
    """Returns a snapshot as a system tree has it; raises as ``find_snapshot``."""
    name = normal_name(name)
    try:
        root = find_root(system, SNAPSHOTS, name)
    except InvalidInput:
        root = None
    if root is None:
        raise _missing(name)
    return _snapshot(database, name, root, find_document(system, SNAPSHOTS, name, SnapshotDocument)[1])


def create_snapshot(
    database: Database,
    name: str,
    metadata: dict[str, Any] | None = None,
    *,
    root: Hash | None = None,
    base_sequence: int | None = None,
    actor: str | None = None,
) -> tuple[Snapshot, bool]:
    """Makes a snapshot, unless one of the same version exists: then that one is returned.

    Args:
        database: the database.
        name: its name.
        metadata: what to keep with it; JSON can carry it.
        root: the version; None means HEAD.
        base_sequence: where the version is a fork's state: that of the fork.
        actor: who makes it.

    Returns:
        The snapshot, and whether it is new.

    Raises:
        AlreadyExists: the name is taken.
        InvalidInput: it is no name.
        Conflict: the lifecycle settings forbid snapshots.
        NotFound: there is no such version.
    """
    name = new_name(name)

    def once() -> tuple[Snapshot, bool]:
        head_root, sequence, system = read_state(database)
        require_snapshot_writes(system)
        if find_root(system, SNAPSHOTS, name) is not None:
            raise _taken(name)
        wanted = head_root if root is None else root
        # A manual one first: it is what somebody gave a name to.
        present = sorted(snapshot_names(database, system, wanted), key=lambda one: (is_automatic(one), one))
        if present:
            return _keep(database, read_snapshot(database, system, present[0]), actor), False
        made = Snapshot(
            name,
            wanted,
            present_ms(database),
            metadata or {},
            _kind(name),
            actor,
            sequence=sequence,
            base_sequence=base_sequence,
        )
        transaction = database.transaction(actor=actor, message=f"create snapshot {name}")
        transaction.set_ref(reference(SNAPSHOTS, name), wanted, expected=b"")
        transaction.put_system(document_path(SNAPSHOTS, name), msgspec.json.encode(made.document()))
        # Of two that snapshot one version at the same time under two names, the second must see the first.
        guard = msgspec.json.encode([name, made.created_ms, wanted.hex()])
        transaction.put_system(_GUARD, guard, condition=same_content(system.get(_GUARD)))
        _commit_new(transaction, name)
        return made, True

    return attempt(once, "The list of snapshots")


def delete_snapshot(
    database: Database,
    name: str,
    *,
    actor: str | None = None,
    message: str | None = None,
    expected: Snapshot | None = None,
) -> Snapshot:
    """Deletes a snapshot and returns what it was; the version stays while HEAD's history holds it.

    Args:
        database: the database.
        name: its name.
        actor: who does it.
        message: what for, for the log.
        expected: what it must be; one that is another by now stays.

    Raises:
        NotFound: there is none of this name, or another than was expected.
    """

    def once() -> Snapshot:
        _, _, system = read_state(database)
        snapshot = read_snapshot(database, system, name)
        if expected not in (None, snapshot):
            raise _missing(name)
        text = message or f"delete snapshot {snapshot.name}"
        transaction = database.transaction(actor=actor, message=text)
        _remove(transaction, system, snapshot)
        try:
            transaction.commit()
        except NotFound:
            raise _missing(name) from None
        return snapshot

    return attempt(once, "The snapshot")


def rename_snapshot(database: Database, name: str, new: str, *, actor: str | None = None) -> Snapshot:
    """Gives a snapshot another name; an automatic one becomes a manual one by it.

    Raises:
        NotFound: there is none of this name.
        AlreadyExists: the new name is taken.
        InvalidInput: the new one is no name.
    """
    new = new_name(new)

    def once() -> Snapshot:
        _, _, system = read_state(database)
        snapshot = read_snapshot(database, system, name)
        if snapshot.name == new:
            return snapshot
        if find_root(system, SNAPSHOTS, new) is not None:
            raise _taken(new)
        renamed = replace(snapshot, name=new, kind=_kind(new))
        transaction = database.transaction(actor=actor, message=f"rename snapshot {snapshot.name} to {new}")
        _remove(transaction, system, snapshot)
        transaction.set_ref(reference(SNAPSHOTS, new), snapshot.root, expected=b"")
        transaction.put_system(document_path(SNAPSHOTS, new), msgspec.json.encode(renamed.document()))
        try:
            _commit_new(transaction, new)
        except NotFound:
            raise _missing(name) from None
        return renamed

    return attempt(once, "The snapshot")


def safety_names(database: Database) -> tuple[str, ...]:
    """Returns names for a safety snapshot that is made now: the first that is free shall be taken."""
    base = f"{SAFETY_PREFIX}{present_ms(database)}"
    return (base, *(f"{base}-{number}" for number in range(2, 100)))


def add_safety_snapshot(
    database: Database, system: Version, transaction: Transaction, *, actor: str | None, reason: str
) -> str:
    """Adds to a transaction a snapshot of HEAD as it is right before the transaction; returns its name.

    Raises:
        Conflict: the lifecycle settings forbid snapshots.
    """
    require_snapshot_writes(system)
    free = (name for name in safety_names(database) if find_root(system, SNAPSHOTS, name) is None)
    name = next(free, None)
    if name is None:
        raise Conflict("There is no free name for a safety snapshot; try again.")
    document = SnapshotDocument(
        created_at=present_ms(database),
        metadata={"reason": reason},
        kind="automatic",
        created_by=actor,
        sequence=database.head().sequence,
    )
    transaction.copy_ref("HEAD", reference(SNAPSHOTS, name))
    transaction.put_system(document_path(SNAPSHOTS, name), msgspec.json.encode(document))
    return name


def _snapshot(database: Database, name: str, root: Hash, document: SnapshotDocument | None) -> Snapshot:
    if document is None:
        # Made by another program: the latest time of what it holds is the best that is known.
        return Snapshot(name, root, database.version_of(root).totals().updated_ms, {}, _kind(name), None)
    return Snapshot(
        name,
        root,
        document.created_at,
        document.metadata,
        document.kind or _kind(name),
        document.created_by,
        document.kept,
        document.sequence,
        document.base_sequence,
    )


def _kind(name: str) -> str:
    return "automatic" if is_automatic(name) else "manual"


def _keep(database: Database, snapshot: Snapshot, actor: str | None) -> Snapshot:
    """Somebody wants a snapshot of this state: an automatic one must not go before a manual one would."""
    if snapshot.kind != "automatic" or snapshot.kept:
        return snapshot
    kept = replace(snapshot, kept=True)
    transaction = database.transaction(actor=actor, message=f"keep snapshot {snapshot.name}")
    transaction.set_ref(reference(SNAPSHOTS, snapshot.name), snapshot.root, expected=snapshot.root)
    transaction.put_system(document_path(SNAPSHOTS, snapshot.name), msgspec.json.encode(kept.document()))
    try:
        transaction.commit()
    except NotFound as error:
        raise PreconditionFailed(error.message) from None
    return kept


def _remove(transaction: Transaction, system: Version, snapshot: Snapshot) -> None:
    transaction.set_ref(reference(SNAPSHOTS, snapshot.name), None, expected=snapshot.root)
    if system.get(document_path(SNAPSHOTS, snapshot.name)) is not None:
        transaction.delete_system(document_path(SNAPSHOTS, snapshot.name))


def _commit_new(transaction: Transaction, name: str) -> None:
    try:
        transaction.commit()
    except AlreadyExists:
        raise _taken(name) from None


def _missing(name: str) -> NotFound:
    return NotFound("There is no snapshot of this name.", name=name[:200])


def _taken(name: str) -> AlreadyExists:
    return AlreadyExists("A snapshot of this name exists.", name=name)
