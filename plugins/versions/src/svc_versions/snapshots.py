"""Snapshots: named versions that stay.

Making one writes a ref and a small document, whatever the size of the database.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from svc.errors import AlreadyExists, Conflict, NotFound, PreconditionFailed
from svc.plugin import Database, Hash, Transaction, Version, attempt, same_content
from svc_versions import models
from svc_versions.documents import SnapshotDocument, present_ms, read_state
from svc_versions.lifecycle import lifecycle_of, require_snapshot_writes
from svc_versions.named_refs import NamedRef
from svc_versions.names import HEAD, SAFETY_PREFIX, SNAPSHOTS, is_automatic, new_name
from svc_versions.roots import snapshot_names

__all__ = [
    "Snapshot",
    "add_head_snapshot",
    "add_safety_snapshot",
    "create_snapshot",
    "delete_snapshot",
    "find_snapshot",
    "list_snapshots",
    "make_safety_snapshot",
    "rename_snapshot",
    "safety_names",
]

_GUARD = ("versions", "newest-snapshot")


class Snapshot(NamedRef[SnapshotDocument], frozen=True):
    """A named version that stays."""

    prefix = SNAPSHOTS
    noun = "snapshot"
    form = SnapshotDocument

    @property
    def kind(self) -> str:
        """``manual``, or ``automatic`` where svc made it by itself."""
        return self.document.kind or _kind(self.name)

    @property
    def kept(self) -> bool:
        """Of an automatic one, whether it stays as long as a manual one."""
        return self.document.kept

    @property
    def metadata(self) -> dict[str, Any]:
        """What its maker keeps with it."""
        return self.document.metadata

    def base_sequence_in(self, database: Database) -> int | None:
        """Of a snapshot of a fork: number of the newest commit of HEAD whose state it holds.

        None where that is a commit of another node.
        """
        is_of_this = self.document.log in ("", database.database_id.hex())
        return self.document.base_sequence if is_of_this else None

    def as_answer(self) -> models.Snapshot:
        """The snapshot as operations answer it."""
        return models.Snapshot(
            self.name, self.root.hex(), self.created_ms, self.metadata, self.kind, self.created_by
        )


def list_snapshots(database: Database) -> list[Snapshot]:
    """Returns all snapshots, newest first. Reads every document; blocks for as long as that takes."""
    return Snapshot.list(database)


def find_snapshot(database: Database, name: str) -> Snapshot:
    """Returns a snapshot."""
    return Snapshot.find(database, name)


def create_snapshot(
    database: Database,
    name: str,
    metadata: dict[str, Any] | None = None,
    *,
    root: Hash | None = None,
    base_sequence: int | None = None,
    actor: str | None = None,
) -> tuple[Snapshot, bool]:
    """Makes a snapshot, of HEAD without a ``root``, and returns it with whether it is new.

    If there is one of the same version, that one is returned. ``metadata`` is what to keep with it; JSON can
    carry it. ``base_sequence`` is that of the fork whose state the version is.

    Raises AlreadyExists, InvalidInput for what is no name, NotFound where there is no such version, and
    Conflict where the lifecycle settings forbid snapshots.
    """
    name = new_name(name)

    def once() -> tuple[Snapshot, bool]:
        head_root, sequence, system = read_state(database)
        require_snapshot_writes(system)
        if Snapshot.exists(system, name):
            raise Snapshot.taken(name)
        wanted = head_root if root is None else root
        # A manual one first: it is what somebody gave a name to.
        present = sorted(snapshot_names(database, system, wanted), key=lambda one: (is_automatic(one), one))
        if present:
            return _keep(database, Snapshot.read(database, system, present[0]), actor), False
        document = SnapshotDocument(
            created_at=present_ms(database),
            metadata=metadata or {},
            kind=_kind(name),
            created_by=actor,
            sequence=sequence,
            base_sequence=base_sequence,
            log="" if base_sequence is None else database.database_id.hex(),
        )
        made = Snapshot(name, wanted, document)
        transaction = database.transaction(actor=actor, message=f"create snapshot {name}")
        made.add(transaction)
        _exclude_others(transaction, system, made)
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
        snapshot = Snapshot.read(database, system, name)
        if expected not in (None, snapshot):
            raise Snapshot.missing(name)
        text = message or f"delete snapshot {snapshot.name}"
        transaction = database.transaction(actor=actor, message=text)
        snapshot.remove(transaction, system)
        try:
            transaction.commit()
        except NotFound:
            raise Snapshot.missing(name) from None
        return snapshot

    return attempt(once, "The snapshot")


def rename_snapshot(database: Database, name: str, new: str, *, actor: str | None = None) -> Snapshot:
    """Gives a snapshot another name; an automatic one becomes a manual one by it.

    Raises NotFound, AlreadyExists, and InvalidInput for what is no name.
    """
    new = new_name(new)

    def once() -> Snapshot:
        _, _, system = read_state(database)
        snapshot = Snapshot.read(database, system, name)
        if snapshot.name == new:
            return snapshot
        if Snapshot.exists(system, new):
            raise Snapshot.taken(new)
        renamed = replace(snapshot, name=new).changed(kind=_kind(new))
        transaction = database.transaction(actor=actor, message=f"rename snapshot {snapshot.name} to {new}")
        snapshot.remove(transaction, system)
        renamed.add(transaction)
        try:
            _commit_new(transaction, new)
        except NotFound:
            raise Snapshot.missing(name) from None
        return renamed

    return attempt(once, "The snapshot")


def safety_names(database: Database, prefix: str = SAFETY_PREFIX) -> tuple[str, ...]:
    """Returns names for a safety snapshot that is made now: the first that is free shall be taken."""
    base = f"{prefix}{present_ms(database)}"
    return (base, *(f"{base}-{number}" for number in range(2, 100)))


def add_safety_snapshot(
    database: Database, system: Version, transaction: Transaction, *, actor: str | None, reason: str
) -> str:
    """Adds to a transaction a snapshot of HEAD as it is right before the transaction; returns its name.

    Raises Conflict where the lifecycle settings forbid snapshots.
    """
    require_snapshot_writes(system)
    free = (name for name in safety_names(database) if not Snapshot.exists(system, name))
    name = next(free, None)
    if name is None:
        raise _no_free_name()
    add_head_snapshot(database, transaction, name, actor=actor, reason=reason)
    return name


def make_safety_snapshot(database: Database, prefix: str, *, actor: str | None, reason: str) -> str | None:
    """Makes a snapshot of HEAD before something that cannot be taken back. Blocks: a commit.

    Args:
        database: the database.
        prefix: what its name begins with; the time follows. It begins with ``_svc_``.
        actor: who does it.
        reason: what for; kept with it.

    Returns:
        Its name; None where the lifecycle settings forbid snapshots.
    """
    if not lifecycle_of(database.system()).snapshot_writes_enabled:
        return None
    for name in safety_names(database, prefix):
        transaction = database.transaction(actor=actor, message=f"create snapshot {name}")
        add_head_snapshot(database, transaction, name, actor=actor, reason=reason)
        try:
            transaction.commit()
        except AlreadyExists:
            continue
        return name
    raise _no_free_name()


def add_head_snapshot(
    database: Database, transaction: Transaction, name: str, *, actor: str | None, reason: str
) -> None:
    """Adds to a transaction an automatic snapshot of HEAD; its commit is refused where the name is taken."""
    document = SnapshotDocument(
        created_at=present_ms(database),
        metadata={"reason": reason},
        kind="automatic",
        created_by=actor,
        sequence=database.head().sequence,
    )
    safety = Snapshot(name, database.head().root, document)
    transaction.copy_ref(HEAD, safety.ref)  # whatever HEAD is by then
    safety.write_document(transaction)


def _no_free_name() -> Conflict:
    return Conflict("There is no free name for a safety snapshot; try again.")


def _kind(name: str) -> str:
    return "automatic" if is_automatic(name) else "manual"


def _keep(database: Database, snapshot: Snapshot, actor: str | None) -> Snapshot:
    """Somebody wants a snapshot of this state: an automatic one must not go before a manual one would."""
    if snapshot.kind != "automatic" or snapshot.kept:
        return snapshot
    kept = snapshot.changed(kept=True)
    transaction = database.transaction(actor=actor, message=f"keep snapshot {snapshot.name}")
    transaction.set_ref(kept.ref, kept.root, expected=kept.root)
    kept.write_document(transaction)
    try:
        transaction.commit()
    except NotFound as error:
        raise PreconditionFailed(error.message) from None
    return kept


def _exclude_others(transaction: Transaction, system: Version, made: Snapshot) -> None:
    """Of two that snapshot one version at the same time under two names, the second must see the first."""
    guard = msgspec.json.encode([made.name, made.created_ms, made.root.hex()])
    transaction.put_system(_GUARD, guard, condition=same_content(system.get(_GUARD)))


def _commit_new(transaction: Transaction, name: str) -> None:
    try:
        transaction.commit()
    except AlreadyExists:
        raise Snapshot.taken(name) from None
