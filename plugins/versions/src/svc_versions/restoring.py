"""Restore: HEAD, a directory or a file goes back to what it was, and what it is now stays in a snapshot.

The safety snapshot is part of the same commit, and is taken of HEAD in the moment of that commit: no write
can come between, so nothing that was ever acknowledged gets lost, whatever the load.
"""

from __future__ import annotations

from msgspec import Struct

from svc.errors import AlreadyExists, Conflict, InvalidInput, NotFound, PreconditionFailed
from svc.plugin import (
    Database,
    Entry,
    EntryKind,
    Hash,
    Path,
    Transaction,
    attempt,
    format_path,
    is_system_path,
)
from svc_versions.documents import read_state
from svc_versions.names import HEAD
from svc_versions.snapshots import add_safety_snapshot, find_snapshot

__all__ = ["RestoredPath", "RestoredSnapshot", "restore_path", "restore_snapshot"]


class RestoredSnapshot(Struct, frozen=True):
    """What restoring a whole snapshot did; no safety snapshot is made when HEAD was that version already."""

    name: str
    auto_snapshot: str | None
    version: Hash


class RestoredPath(Struct, frozen=True):
    """What restoring a path did; links on the way, as they were in the version, are resolved.

    ``entry`` stands there now. ``source`` is the root that it came from, ``version`` HEAD's root after it.
    """

    path: Path
    entry: Entry
    source: Hash
    auto_snapshot: str
    version: Hash


def restore_snapshot(database: Database, name: str, *, actor: str | None = None) -> RestoredSnapshot:
    """Makes a snapshot's version HEAD; blocks for a commit.

    Raises NotFound, and Conflict where a safety snapshot is needed and the lifecycle settings forbid it.
    """

    def once() -> RestoredSnapshot:
        snapshot = find_snapshot(database, name)
        head_root, _, system = read_state(database)
        if head_root == snapshot.root:
            return RestoredSnapshot(snapshot.name, None, head_root)
        text = f"restore snapshot {snapshot.name}"
        transaction = database.transaction(actor=actor, message=text)
        safety = add_safety_snapshot(database, system, transaction, actor=actor, reason=text)
        transaction.set_ref(HEAD, snapshot.root)
        version = _commit(transaction)
        return RestoredSnapshot(snapshot.name, safety, version)

    return attempt(once, "The list of snapshots")


def restore_path(
    database: Database, path: Path, source: Hash, *, actor: str | None = None, label: str | None = None
) -> RestoredPath:
    """Puts a file, link or directory back as a version has it; blocks for a commit.

    A directory becomes exactly what it was: what came into it since then is gone from HEAD, and in the safety
    snapshot. ``label`` is the version's name, for the log.

    Raises:
        NotFound: the version has nothing at this path.
        InvalidInput: it is the root directory: that is what restoring a snapshot is for.
        Conflict: a directory stands where the file was, or a file where the directory was or one of its
            parents is needed; or a safety snapshot is forbidden by the lifecycle settings.
    """
    if not path:
        raise InvalidInput("The root directory is restored as a whole snapshot.", path="/")
    with database.hold_version(source):  # until what is found there is put back
        return _restore_path(database, path, source, actor, label)


def _restore_path(
    database: Database, path: Path, source: Hash, actor: str | None, label: str | None
) -> RestoredPath:
    old = database.at(source)
    found, entry = old.follow_parents(path, last=False)
    if entry is None or is_system_path(found) or not found:
        raise NotFound("The version has nothing at this path.", path=format_path(path))

    def once() -> RestoredPath:
        head_root, _, system = read_state(database)
        present = database.version_of(head_root).get(found)
        _refuse_other_kind(found, present, entry)
        text = f"restore {format_path(found)} from {label or source.hex()}"
        transaction = database.transaction(actor=actor, message=text)
        safety = add_safety_snapshot(database, system, transaction, actor=actor, reason=text)
        transaction.put_entry(found, entry)
        version = _commit(transaction)
        return RestoredPath(found, entry, source, safety, version)

    return attempt(once, "The list of snapshots")


def _refuse_other_kind(path: Path, present: Entry | None, entry: Entry) -> None:
    if present is None:
        return
    if EntryKind.DIRECTORY in (present.kind, entry.kind) and present.kind is not entry.kind:
        what = "A directory" if present.kind is EntryKind.DIRECTORY else "A file or link"
        raise Conflict(f"{what} stands at this path now; move it away first.", path=format_path(path))


def _commit(transaction: Transaction) -> Hash:
    try:
        return transaction.commit().version
    except AlreadyExists as error:
        # Another safety snapshot took the name in the same millisecond.
        raise PreconditionFailed(error.message) from None
