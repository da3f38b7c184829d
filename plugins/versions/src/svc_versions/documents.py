"""The documents beside refs: what the system tree knows of a snapshot or a fork besides its root.

A system tree flows in, and names with roots and documents flow out; a document is JSON, and one that is
missing or written by another program in another form counts as absent.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, TypeVar, cast

import msgspec

from svc.database import Condition, Database, Version, reference_name, reference_path
from svc.hashing import Hash
from svc.paths import Path
from svc.tree import Entry, EntryKind
from svc_versions.names import document_path, reference

__all__ = [
    "ForkDocument",
    "SnapshotDocument",
    "documents",
    "find_document",
    "find_root",
    "present_ms",
    "read_state",
    "references",
    "same_content",
]

_MOST_KEPT = 100_000

T = TypeVar("T", bound=msgspec.Struct)


class SnapshotDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The document of a snapshot, at ``/versions/snapshots/<name>`` of the system tree.

    Attributes:
        created_at: Unix milliseconds.
        metadata: what its maker wants to keep with it.
        kind: ``manual`` or ``automatic``; empty: the name says it.
        created_by: who made it (a user id), if known.
        kept: of an automatic one: somebody asked for a snapshot of the same state, so it stays as long as
            a manual one.
        sequence: number of the last commit before it was made.
        base_sequence: of a snapshot of a fork: number of the newest commit of HEAD whose state it holds.
    """

    created_at: int
    metadata: dict[str, Any] = {}
    kind: str = ""
    created_by: str | None = None
    kept: bool = False
    sequence: int = 0
    base_sequence: int | None = None


class ForkDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The document of a fork, at ``/versions/forks/<name>`` of the system tree.

    Attributes:
        created_at: Unix milliseconds.
        created_by: who made it (a user id), if known.
        base: root, in hex, of the newest state that the fork and HEAD have in common: what the fork began
            from, or what the last merge between the two made common.
        base_sequence: number of the newest commit of HEAD whose state the fork holds.
        merged: by name and time of creation of another fork: its root, in hex, when it was last merged
            into this one, and the number of the last commit then.
        sequence: number of the last commit before it was made.
    """

    created_at: int
    created_by: str | None = None
    base: str = ""
    base_sequence: int = 0
    merged: dict[str, tuple[str, int]] = {}
    sequence: int = 0


class _Decoded:
    """Documents by the hash of their bytes, decoded once in a process; a content never changes."""

    def __init__(self) -> None:
        self._known: dict[tuple[Hash, type], msgspec.Struct | None] = {}

    def get(self, version: Version, entry: Entry, form: type[T]) -> T | None:
        """Returns the document of an entry; None when it is not of this form."""
        key = (entry.hash, form)
        known = self._known.get(key, _UNKNOWN)
        if known is not _UNKNOWN:
            return cast("T | None", known)
        try:
            document = msgspec.json.decode(version.read_all(entry), type=form)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            document = None
        # Each step is atomic, and a document that is decoded twice is the same both times.
        if len(self._known) >= _MOST_KEPT:
            self._known.clear()
        self._known[key] = document
        return document


_UNKNOWN: Any = object()
_DECODED = _Decoded()


def read_state(database: Database) -> tuple[Hash, int, Version]:
    """Returns HEAD's root, the number of the last commit, and the system tree, all of one moment."""
    head = database.head()
    return head.root, head.sequence, database.version_of(head.system_root)


def find_root(system: Version, kind: str, name: str) -> Hash | None:
    """Returns the root of a ref, or None when there is none of this name."""
    entry = system.get(reference_path(reference(kind, name)))
    if entry is None or entry.kind is not EntryKind.DIRECTORY:
        return None
    return entry.hash


def find_document(system: Version, kind: str, name: str, form: type[T]) -> tuple[Entry | None, T | None]:
    """Returns the document beside a ref, and the entry that holds it; each may be None."""
    entry = system.get(document_path(kind, name))
    if entry is None or entry.kind is not EntryKind.FILE:
        return None, None
    return entry, _DECODED.get(system, entry, form)


def references(database: Database, system: Version, kind: str) -> Iterator[tuple[str, Hash]]:
    """Yields (name, root) of the refs of one kind, without the kind."""
    for name, root in database.refs(kind, system=system):
        yield name.partition("/")[2], root


def documents(system: Version, kind: str, form: type[T]) -> dict[str, T]:
    """Returns all documents of one kind by name."""
    base: Path = document_path(kind, "x")[:-1]
    if system.get(base) is None:
        return {}
    found: dict[str, T] = {}
    for path, entry in system.walk(base, files_only=True):
        if entry.kind is EntryKind.FILE and (document := _DECODED.get(system, entry, form)) is not None:
            name = reference_name(("", kind, *path[len(base) :])).partition("/")[2]
            found[name] = document
    return found


def same_content(entry: Entry | None) -> Condition:
    """Returns the condition that a document is still what it was when it was read."""
    if entry is None:
        return Condition(if_none_match=("*",))
    return Condition(if_match=(entry.hash.hex(),))


def present_ms(database: Database) -> int:
    """The present time, never before the last commit's: newest first is then the order of the log."""
    return max(time.time_ns() // 1_000_000, database.head().time_ms)
