"""Who looks at the history, and what of it they may see.

What is not at HEAD any more is for those only who may delete there, as with every read of the past.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from svc.errors import CorruptRecord, NotFound
from svc.plugin import (
    Change,
    Database,
    Entry,
    EntryKind,
    Hash,
    Operation,
    Path,
    TransactionRecord,
    format_path,
    is_system_path,
    pause,
)
from svc_history.counting import Counter, own_counts
from svc_history.rows import Counts

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["Viewer"]

_PAUSE_EVERY = 256
_MOST_LOOKED_AT = 1_000


class Viewer:
    """One caller, looking at one database as it is now; without a context, one who sees everything."""

    def __init__(self, database: Database, context: Call | None = None) -> None:
        self.database = database
        self._context = context
        self._head = database.at()
        self.sees_all = context is None or _is_root(context)
        # The holder of a share link has no account, and sees no list of snapshots.
        self.knows_snapshots = context is None or context.identity.user_id is not None

    def authorize(self, path: Path) -> None:
        """Lets a request for a path go on.

        Raises NotFound for the system namespace and for what the caller must not learn of, else Forbidden.
        """
        if is_system_path(path):
            raise NotFound("There is nothing at this path.", path=format_path(path))
        # Whether a directory is there, ``shows`` is told later.
        if self._context is not None and not self._context.may(Operation.LIST, path, directory=True):
            self._context.authorize(Operation.READ, path)

    def shows(self, path: Path, *, directory: bool = False) -> bool:
        """Whether the caller may know what happened to a path; a ``directory`` needs no more than LIST."""
        if is_system_path(path):
            return False
        if self.sees_all or self._context is None:
            return True
        may = self._context.may
        if not (may(Operation.READ, path) or (directory and may(Operation.LIST, path, directory=True))):
            return False
        return may(Operation.DELETE, path) or self._head.get(path) is not None

    def sees_below(self, path: Path) -> bool:
        """Whether nothing at or below a path is hidden from the caller, in any version; cheap.

        Only then may they have what is made from everything below a directory: its hash and its size.
        """
        if self.sees_all or self._context is None:
            return True
        return self._reads_below(path) and self._context.may_below(Operation.DELETE, path)

    def sums_up(self, path: Path, entry: Entry) -> bool:
        """Whether the caller may have the hash, size and times of what stands or stood at a path."""
        return entry.kind is not EntryKind.DIRECTORY or self.sees_below(path)

    def shows_change(self, change: Change) -> bool:
        """Whether the caller may see a difference.

        A directory that stays a directory differs by what is made from everything below it.
        """
        before, after = change.before, change.after
        entry = after or before
        is_directory = entry is not None and entry.kind is EntryKind.DIRECTORY
        if is_directory and before is not None and after is not None and before.kind is after.kind:
            return self.sees_below(change.path)
        return self.shows(change.path, directory=is_directory)

    def changes(
        self,
        before: Hash,
        after: Hash,
        path: Path = (),
        *,
        after_path: Path | None = None,
        counter: Counter | None = None,
    ) -> Iterator[Change]:
        """Yields the differences of two versions at and below a path that the caller may see."""
        left = self.database.version_of(before)
        changes = left.diff(self.database.version_of(after), path, after=after_path)
        for count, change in enumerate(changes, start=1):
            if counter is not None and not counter.look():
                return
            if self.shows_change(change):
                yield change
            if count % _PAUSE_EVERY == 0:
                pause()

    def visible_counts(
        self, before: Hash, after: Hash, path: Path, counter: Counter
    ) -> tuple[bool, Counts | None]:
        """Returns whether the caller may see anything of what differs, and how much.

        Where the counter meets its limit: what was seen until then, and None.
        """
        if self.sees_below(path):
            database = self.database
            return True, counter.count(database.version_of(before), database.version_of(after), path)
        sees, counts = False, Counts()
        for change in self.changes(before, after, path, counter=counter):
            sees, counts = True, counts.plus(own_counts(change.before, change.after))
        return sees, None if counter.is_exhausted else counts

    def sees_difference(self, before: Hash, after: Hash, path: Path, counter: Counter) -> bool:
        """Whether the caller may see anything of what differs between two versions at and below a path.

        Where the counter meets its limit, what was not looked at counts as hidden.
        """
        return next(self.changes(before, after, path, counter=counter), None) is not None

    def sees_commit(self, sequence: int, path: Path = (), *, is_certain: bool = True) -> tuple[bool, bool]:
        """Returns whether the caller may see anything of a commit whose trees were collected, and all of it.

        Only what its operations name counts, at and below a path: what else they reached is not known. Where
        its record is damaged, nobody knows what it did: it is for those who may read everything below.

        Args:
            sequence: number of the commit.
            path: what it is asked about; the commit named it, what is below it, or a directory above.
            is_certain: whether it named more than a directory above.
        """
        if self.sees_below(()):
            return True, True
        is_shown = bool(path) and self.shows(path, directory=True)
        if is_shown and (not is_certain or self.sees_below(path)):
            return True, False
        try:
            records = self.database.commit(sequence).transactions
        except CorruptRecord:
            return is_shown and self._reads_below(path), False
        named = [one for one in _named_by(records) if one[: len(path)] == path][:_MOST_LOOKED_AT]
        return any(self.shows(one, directory=bool(path) and one == path) for one in named), False

    def _reads_below(self, path: Path) -> bool:
        return self._context is not None and self._context.may_below(Operation.READ, path)

    def sees_all_changes(self, before: Hash, after: Hash) -> bool:
        """Whether nothing that differs is hidden from the caller; for many differences the answer is no.

        A message may name anything that its commit changed, so it is for those only who may know of it all.
        """
        if self.sees_below(()):
            return True
        left = self.database.version_of(before)
        for count, change in enumerate(left.diff(self.database.version_of(after)), start=1):
            if count > _MOST_LOOKED_AT or not self.shows_change(change):
                return False
        return True


def _named_by(records: Iterable[TransactionRecord]) -> Iterator[Path]:
    for record in records:
        for change in record.changes:
            if change.system or change.kind == "ref":
                continue
            yield change.path
            if change.kind == "move" and change.source is not None:
                yield change.source


def _is_root(context: Call) -> bool:
    return context.identity.is_unrestricted_root
