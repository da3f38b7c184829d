"""What callers who are not root may fork and merge: nothing comes to light by it that they may not see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import Forbidden
from svc.plugin import Entry, EntryKind, Operation, Path, Version, format_path, pause
from svc_versions.forks import snapshot_or_version
from svc_versions.tree_edits import Edit

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["MergePermit", "authorize_base"]

_PAUSE_EVERY = 256


def authorize_base(call: Call, base: str) -> None:
    """Makes sure that a fork of the past brings back nothing that its maker may not see.

    On a fork, a file that HEAD has lost is a file like any other, for everybody; so making one needs
    the permission to see deleted files on each of them. Forbidden does not say which paths lack it.
    """
    database = call.database
    if call.may_below(Operation.DELETE, ()):
        snapshot_or_version(database, base)
        return
    head, past = database.at(), database.at(snapshot_or_version(database, base))
    for number, change in enumerate(head.diff(past)):
        if number % _PAUSE_EVERY == 0:
            pause()
        if change.before is None and not call.may(Operation.DELETE, change.path):
            raise Forbidden("The version holds what was deleted since, and what you may not see.")


class MergePermit:
    """Asks for each path that a merge into a fork would change whether the caller may change it so.

    What a snapshot brings back that HEAD has no more needs the permission to see deleted files too.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._head: Version | None = None

    def __call__(self, edits: list[Edit], ours: Version, theirs: Version) -> None:
        """See ``svc_versions.merging.Permit``."""
        database = self._call.database
        head = database.at()
        is_present = theirs.root == head.root or theirs.root in {root for _, root in database.refs("forks")}
        self._head = None if is_present else head
        for edit in edits:
            if _is_directory(edit.before) and _is_directory(edit.after):
                # The directory stays, and what was in it goes: else its entries have edits of their own.
                self._require_inside(Operation.DELETE, ours, edit.path)
                continue
            if (
                edit.before is not None
                and edit.after is not None
                and not (_is_directory(edit.before) or _is_directory(edit.after))
            ):
                self._require(Operation.UPDATE, edit.path)
                continue
            if edit.before is not None:
                self._require_below(Operation.DELETE, ours, edit.path, edit.before)
            if edit.after is not None and edit.source is not None:
                self._require_copied(theirs, edit.source, edit.path, edit.after)
            elif edit.after is not None:
                self._require_below(Operation.CREATE, theirs, edit.path, edit.after)

    def _require_below(self, operation: Operation, version: Version, path: Path, entry: Entry) -> None:
        self._require(operation, path)
        if entry.kind is EntryKind.DIRECTORY and version.get(path) is not None:
            self._require_inside(operation, version, path)

    def _require_copied(self, theirs: Version, source: Path, target: Path, entry: Entry) -> None:
        """As for a copy: what comes to another path must be readable where it comes from."""
        self._require(Operation.READ, source)
        self._require(Operation.CREATE, target)
        if not _is_directory(entry):
            return
        needed = ((Operation.READ, source), (Operation.CREATE, target), (Operation.CONFIGURE, target))
        if all(self._may_below(operation, path) for operation, path in needed):
            return
        for below, _ in theirs.walk(source):
            self._require(Operation.READ, below)
            self._require(Operation.CREATE, target + below[len(source) :])

    def _require_inside(self, operation: Operation, version: Version, path: Path) -> None:
        if not self._may_below(operation, path):
            for below, _ in version.walk(path):
                self._require(operation, below)

    def _may_below(self, operation: Operation, path: Path) -> bool:
        may_below = self._call.may_below
        return may_below(operation, path) and may_below(Operation.DELETE, path)

    def _require(self, operation: Operation, path: Path) -> None:
        brings = operation in (Operation.CREATE, Operation.READ)
        if brings and self._head is not None and self._head.get(path) is None:
            self._require(Operation.DELETE, path)
        if self._call.may(operation, path):
            return
        if not self._call.may(Operation.READ, path):
            raise Forbidden("The merge changes paths that you may not change.")
        raise Forbidden(f"You may not {operation.name.lower()} this path.", path=format_path(path))


def _is_directory(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is EntryKind.DIRECTORY
