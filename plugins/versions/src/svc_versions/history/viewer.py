"""Who looks at the history, and what of it they may see: one place for all of its answers.

Paths and commits flow in; yes or no, or the part that is visible, flows out. What is not at HEAD any more is
for those only who may delete there, as with every read of the past.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from svc.database import Database, pause
from svc.errors import NotFound
from svc.hashing import Hash
from svc.paths import Path, format_path, is_system_path
from svc.plugins import Operation
from svc.tree import Change, EntryKind
from svc_versions.history.rows import Counts
from svc_versions.history.view import counts_of

if TYPE_CHECKING:
    from svc.pipeline import RequestContext

__all__ = ["Viewer"]

_PAUSE_EVERY = 256
_MOST_LOOKED_AT = 1_000


class Viewer:
    """One caller, looking at one database as it is now.

    Args:
        database: the database.
        context: the request's context; None is who holds the file itself, and sees everything.
    """

    def __init__(self, database: Database, context: RequestContext | None = None) -> None:
        self.database = database
        self._context = context
        self._head = database.at()
        self.sees_all = context is None or _is_root(context)

    def authorize(self, path: Path) -> None:
        """Lets a request for a path go on.

        Raises:
            NotFound: it lies in the system namespace, or the caller must not learn of it.
            Forbidden: the caller may neither read nor list it.
        """
        if is_system_path(path):
            raise NotFound("There is nothing at this path.", path=format_path(path))
        if self._context is not None and not self._context.may(Operation.LIST, path):
            self._context.authorize(Operation.READ, path)

    def shows(self, path: Path, *, directory: bool = False) -> bool:
        """Whether the caller may know what happened to a path.

        Args:
            path: the path.
            directory: whether it is a directory, which may be listed where it may not be read.
        """
        if is_system_path(path):
            return False
        if self.sees_all or self._context is None:
            return True
        may = self._context.may
        if not (may(Operation.READ, path) or (directory and may(Operation.LIST, path))):
            return False
        return may(Operation.DELETE, path) or self._head.get(path) is not None

    def shows_change(self, change: Change) -> bool:
        """Whether the caller may see a difference."""
        entry = change.after or change.before
        is_directory = entry is not None and entry.kind is EntryKind.DIRECTORY
        return self.shows(change.path, directory=is_directory)

    def changes(self, before: Hash, after: Hash, path: Path = ()) -> Iterator[Change]:
        """Yields the differences of two versions at and below a path that the caller may see."""
        left = self.database.version_of(before)
        for count, change in enumerate(left.diff(self.database.version_of(after), path), start=1):
            if self.shows_change(change):
                yield change
            if count % _PAUSE_EVERY == 0:
                pause()

    def visible_counts(self, before: Hash, after: Hash, path: Path = ()) -> Counts | None:
        """Returns how much the caller may see of what differs; None when that is nothing."""
        counts: Counts | None = None
        for change in self.changes(before, after, path):
            counts = counts_of(change) if counts is None else counts.plus(counts_of(change))
        return counts

    def sees_all_changes(self, before: Hash, after: Hash) -> bool:
        """Whether nothing that differs is hidden from the caller; for many differences the answer is no.

        A message may name anything that its commit changed, so it is for those only who may know of it all.
        """
        if self.sees_all:
            return True
        left = self.database.version_of(before)
        for count, change in enumerate(left.diff(self.database.version_of(after)), start=1):
            if count > _MOST_LOOKED_AT or not self.shows_change(change):
                return False
        return True


def _is_root(context: RequestContext) -> bool:
    from svc.pipeline import is_unrestricted_root  # Commands, which have no context, do without.

    return is_unrestricted_root(context.identity)
