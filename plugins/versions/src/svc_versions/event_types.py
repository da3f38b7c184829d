"""``versions_created``: snapshots and forks that were made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from svc_events.api import EventData, EventType

from svc.errors import SvcError
from svc.plugin import EntryKind, Version, read_record, reference_path
from svc_versions.documents import ForkDocument, SnapshotDocument
from svc_versions.names import FORKS, SNAPSHOTS, document_path, reference

if TYPE_CHECKING:
    from svc_events.api import FeedCommit, SystemChange

__all__ = ["VersionEvents"]

_KINDS: dict[str, tuple[str, type[SnapshotDocument | ForkDocument]]] = {
    SNAPSHOTS: ("snapshot", SnapshotDocument),
    FORKS: ("fork", ForkDocument),
}


class VersionEvents(EventType):
    """A snapshot or a fork came to be; one that was renamed came to be under its new name.

    Everybody may see it who has an account, as with the lists of both.
    """

    names = ("versions_created",)
    seen_by = "users"

    def events(self, commit: FeedCommit, configuration: Any) -> Iterator[EventData | None]:
        """See ``EventType``. After a collection those are left out that no longer are what they were."""
        del configuration
        for found in commit.system_changes:
            change = found.change
            if change.kind == "ref" and change.path[0] in _KINDS:
                yield _event(commit, found)


def _event(commit: FeedCommit, found: SystemChange) -> EventData | None:
    kind, *parts = found.change.path
    name = "/".join(parts)
    try:
        if _root(commit.system(before=True), kind, name) is not None:
            return None
        system = commit.system()
        root = _root(system, kind, name)
        created_at = _created_at(system, kind, name)
    except SvcError:
        if not (found.transaction.message or "").startswith("create "):
            return None
        now = commit.database.system()
        root, created_at = _root(now, kind, name), _created_at(now, kind, name)
    if root is None:
        return None
    payload = {
        "kind": _KINDS[kind][0],
        "name": name,
        "root_hash": root.hex(),
        "created_at": commit.commit.time_ms if created_at is None else created_at,
    }
    return EventData("versions_created", payload)


def _root(system: Version, kind: str, name: str) -> bytes | None:
    entry = system.get(reference_path(reference(kind, name)))
    return entry.hash if entry is not None and entry.kind is EntryKind.DIRECTORY else None


def _created_at(system: Version, kind: str, name: str) -> int | None:
    form: type[Any] = _KINDS[kind][1]
    document = read_record(system, system.get(document_path(kind, name)), form, keep=False)
    return None if document is None else document.created_at
