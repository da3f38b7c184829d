"""The documents of the system tree that all nodes have alike: users, keys, grants, settings.

Descriptors of plugins say which they are, and who wins. The register of a document ``users/x`` has the path
``("", "system", "users", "x")``. ``sync/stamped`` holds a copy of each document as it was when registers and
documents agreed last: what differs from it was committed here since, whatever a collection has taken.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from functools import lru_cache

from svc.plugin import (
    EMPTY_ROOT,
    Entry,
    EntryKind,
    Path,
    SyncRule,
    SystemPaths,
    Transaction,
    Version,
    declared_system_paths,
    format_path,
    same_content,
)
from svc_sync.encoding import MAXIMUM_DOCUMENT_BYTES
from svc_sync.registers import Register, Rule, winner
from svc_sync.scopes import REFERENCES, SYSTEM, is_of_user
from svc_sync.values import Document

__all__ = [
    "COPIED",
    "STAMPED_DOCUMENTS",
    "Documents",
    "begin_documents",
    "declared",
    "is_too_large",
    "note_documents",
    "put_documents",
    "replace_document",
    "rule_of",
    "take_copied",
]

STAMPED_DOCUMENTS: Path = ("sync", "stamped")
COPIED: Path = ("sync", "copied")
"""Holds what a first copy has brought, until it counts."""

_RULES = {
    SyncRule.LAST_WRITER: Rule.LAST_WRITER,
    SyncRule.REMOVAL_WINS: Rule.REMOVAL_WINS,
    SyncRule.KEEP_LOSERS: Rule.KEEP_LOSERS,
}

logger = logging.getLogger("svc.sync")


@lru_cache(maxsize=1)
def declared() -> SystemPaths:
    """Returns what the descriptors of the plugins say that may be used in this process."""
    return declared_system_paths()


def rule_of(path: Path) -> Rule | None:
    """Returns who wins at the path of a register; None where nodes exchange nothing there."""
    if is_of_user(path):
        return Rule.KEEP_LOSERS
    if path[:2] == SYSTEM and path[2:]:
        return _RULES.get(declared().sync_rule(path[2:]))
    return _RULES.get(declared().sync_rule(path[1:])) if path[:2] == REFERENCES and path[3:] else None


class Documents:
    """The documents of one state of the system tree, as they were stamped.

    Args:
        system: the state.
    """

    __slots__ = ("_system",)

    def __init__(self, system: Version) -> None:
        self._system = system

    def entry(self, path: Path) -> Entry | None:
        """Returns the entry of what was stamped at the path of a register."""
        found = self._system.get((*STAMPED_DOCUMENTS, *path[2:]))
        return found if found is not None and found.kind is EntryKind.FILE else None

    def value(self, path: Path) -> Document | None:
        """Returns the document that was stamped at the path of a register."""
        return self.read(self.entry(path))

    def read(self, entry: Entry | None) -> Document | None:
        """Returns the document of an entry."""
        return None if entry is None else Document(self._system.read_all(entry))

    def changes(self) -> Iterator[tuple[Path, Entry | None, Entry | None]]:
        """Yields what differs from what was stamped: the path of the register, and the entries of both."""
        for root, rule in declared().exchanged():
            if rule is SyncRule.KEEP_LOSERS:
                continue
            before, now = self._system.get((*STAMPED_DOCUMENTS, *root)), self._system.get(root)
            for path, old, new in _differences(self._system, root, before, now):
                if (old or new) is not None and rule_of((*SYSTEM, *path)) is not None:
                    yield (*SYSTEM, *path), old, new

    def travels(self, path: Path) -> bool:
        """Whether nodes exchange what was stamped at the path of a register; yes where nothing was."""
        entry = self.entry(path)
        return rule_of(path) is not None and (entry is None or entry.size <= MAXIMUM_DOCUMENT_BYTES)

    def changed_since(self, other: Documents) -> Iterator[Path]:
        """Yields the paths of registers whose documents were not stamped as in another state."""
        for change in other._system.diff(self._system, STAMPED_DOCUMENTS):
            yield (*SYSTEM, *change.path[len(STAMPED_DOCUMENTS) :])

    def walk(self, after: Path | None) -> Iterator[tuple[Path, Document]]:
        """Yields all that was stamped, in the order of paths, from behind the path of a register."""
        if self._system.get(STAMPED_DOCUMENTS) is None:
            return
        behind = None if after is None else (*STAMPED_DOCUMENTS, *after[2:])
        for place, entry in self._system.walk(STAMPED_DOCUMENTS, after=behind, files_only=True):
            path = (*SYSTEM, *place[len(STAMPED_DOCUMENTS) :])
            if entry.size <= MAXIMUM_DOCUMENT_BYTES and rule_of(path) is not None:
                yield path, Document(self._system.read_all(entry))


def begin_documents(changes: Transaction, system: Version) -> None:
    """Takes all documents for stamped, as they are: whoever joins is given them."""
    for root, rule in declared().exchanged():
        entry = system.get(root)
        if entry is not None and rule is not SyncRule.KEEP_LOSERS:
            changes.put_system_entry((*STAMPED_DOCUMENTS, *root), entry)


def note_documents(
    changes: Transaction, stamped: Iterable[tuple[Path, Entry | None]], system: Version
) -> None:
    """Takes documents for stamped; None for those that are gone."""
    stamped = list(stamped)
    for path, entry in stamped:
        place = (*STAMPED_DOCUMENTS, *path[2:])
        if entry is None and system.get(place) is not None:
            changes.delete_system(place)
    for path, entry in stamped:
        if entry is not None:
            changes.put_system_entry((*STAMPED_DOCUMENTS, *path[2:]), entry)


def is_too_large(path: Path, entry: Entry | None) -> bool:
    """Whether a document can't travel in its register; says so."""
    if entry is None or entry.size <= MAXIMUM_DOCUMENT_BYTES:
        return False
    logger.warning("%s is larger than 64 KiB, and stays on this node", format_path(path[2:]))
    return True


def put_documents(
    changes: Transaction, documents: Documents, registers: Iterable[tuple[Path, Register]]
) -> None:
    """Brings documents to what their registers say, on condition that they are what was stamped."""
    winners: list[tuple[Path, Document | None]] = []
    for path, register in registers:
        rule = rule_of(path)
        assert rule is not None
        value = winner(register, rule)[1].value
        winners.append((path, value if isinstance(value, Document) else None))
    # What goes makes room for what comes.
    for path, document in sorted(winners, key=lambda row: row[1] is not None):
        replace_document(changes, documents, path, document)


def replace_document(changes: Transaction, documents: Documents, path: Path, value: Document | None) -> None:
    """Makes a document what it shall be, on condition that it is what was stamped."""
    entry = documents.entry(path)
    if value == documents.read(entry):
        return
    if value is not None:
        changes.put_system(path[2:], value.data, condition=same_content(entry))
        changes.put_system((*STAMPED_DOCUMENTS, *path[2:]), value.data)
    else:
        changes.delete_system(path[2:], condition=same_content(entry))
        changes.delete_system((*STAMPED_DOCUMENTS, *path[2:]))


def take_copied(changes: Transaction, system: Version) -> None:
    """Replaces the documents of this node by those that were copied; all but its own settings."""
    for root, rule in declared().exchanged():
        if rule is SyncRule.KEEP_LOSERS:
            continue
        own, copied = system.get(root), system.get((*COPIED, *root))
        kept = [(path, system.get(path)) for path in sorted(declared().kept()) if path[: len(root)] == root]
        if own is not None:
            changes.delete_system(root)
        if copied is not None:
            changes.put_system_entry(root, copied)
        for path, entry in kept:
            if entry is not None:
                changes.put_system_entry(path, entry)
    if system.get(STAMPED_DOCUMENTS) is not None:
        changes.delete_system(STAMPED_DOCUMENTS)
    whole = system.get(COPIED)
    if whole is not None:
        changes.put_system_entry(STAMPED_DOCUMENTS, whole)
        changes.delete_system(COPIED)


def _differences(
    system: Version, root: Path, before: Entry | None, now: Entry | None
) -> Iterator[tuple[Path, Entry | None, Entry | None]]:
    """Yields the files that differ at or below a path."""
    if before is not None and now is not None and (before.kind, before.hash) == (now.kind, now.hash):
        return
    if any(entry is not None and entry.kind is EntryKind.FILE for entry in (before, now)):
        yield root, _file(before), _file(now)
    old, new = (
        system.sibling(entry.hash if entry is not None and entry.kind is EntryKind.DIRECTORY else EMPTY_ROOT)
        for entry in (before, now)
    )
    for change in old.diff(new):
        if _file(change.before) is not None or _file(change.after) is not None:
            yield (*root, *change.path), _file(change.before), _file(change.after)


def _file(entry: Entry | None) -> Entry | None:
    return entry if entry is not None and entry.kind is EntryKind.FILE else None
