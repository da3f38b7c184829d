"""The history without its view: what the view would hold of a commit is worked out when it is asked for.

So the history can be read where the view cannot be brought up to date: a record is damaged, or the disk is
full. It costs a look at every commit on the way. Commits whose records cannot be read stand as one, which
nobody is known to have made, and which did what the commits around them leave to be done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from svc.errors import CorruptRecord, InsufficientStorage, NotFound
from svc.plugin import (
    EMPTY_ROOT,
    Commit,
    Database,
    Path,
    PathChange,
    TransactionRecord,
    pause,
)
from svc_history.reading import History, LookedAt
from svc_history.rows import (
    CommitRow,
    ForkRow,
    commit_prefix,
    decode_commit,
    decode_fork,
    fork_prefix,
    row_key,
)
from svc_history.view import MOST_LISTED, HistoryView, commit_rows

__all__ = ["WalkedHistory", "damaged_json", "history_of", "open_history"]

_Rows = dict[bytes, bytes]

_PAUSE_EVERY = 32
_MOST_KEPT = 4_096
_MOST_ROWS_KEPT = 32
_UNKNOWN = (TransactionRecord(None, None, "HEAD", (PathChange("ref", ("HEAD",)),)),)


def history_of(database: Database) -> History:
    """Returns the history of a database that has the view, by the view if that can be brought up to date."""
    history = History(database)
    try:
        history.catch_up()
    except (CorruptRecord, InsufficientStorage):
        return WalkedHistory(database)
    return history


def open_history(database: Database) -> History:
    """Returns the history of a database that a command opened, where no server has registered the view."""
    database.register_view(HistoryView())
    return history_of(database)


def damaged_json(history: History) -> dict[str, list[int]]:
    """Returns what an answer says of the commits that were met and cannot be read; nothing where all can."""
    found = sorted(history.damaged_commits)
    return {"damaged_commits": found} if found else {}


class WalkedHistory(History):
    """See ``History``."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._known: dict[int, _Rows] = {}

    def catch_up(self) -> None:
        """There is nothing to wait for."""

    def commits(self, before: int | None = None) -> Iterator[tuple[int, CommitRow]]:
        """See ``History``."""
        for sequence, rows in self._walk(before):
            value = rows.get(row_key(commit_prefix(), sequence))
            if value is not None:
                yield sequence, decode_commit(value)

    def looked_at(
        self,
        path: Path,
        before: int | None = None,
        *,
        above: Sequence[bytes] | None = None,
        first_batch: int = 0,
    ) -> Iterator[LookedAt]:
        """See ``History``; every commit that changed HEAD's tree is among them."""
        prefixes = self._prefixes(path, above)
        for sequence, rows in self._walk(before):
            commit = rows.get(row_key(commit_prefix(), sequence))
            if commit is None:
                continue
            one = LookedAt(sequence, decode_commit(commit), None)
            for count, prefix in enumerate(prefixes):
                value = rows.get(row_key(prefix, sequence))
                if value is not None:
                    one = self._looked_at(path, sequence, commit, value, is_above=count > 1)
                    break
            yield one._replace(is_damaged=sequence in self.damaged_commits)

    def prefixes_above(self, path: Path, last: int) -> list[bytes]:
        """See ``History``; all of them."""
        return list(self._prefixes(path, None)[2:])

    def of_fork(self, name: str, before: int | None = None) -> Iterator[tuple[int, ForkRow]]:
        """See ``History``."""
        for sequence, rows in self._walk(before):
            value = rows.get(row_key(fork_prefix(name), sequence))
            if value is not None:
                yield sequence, decode_fork(value)

    def commit(self, sequence: int) -> CommitRow:
        """As ``History.commit``; CorruptRecord where its record is damaged: what it did is then not known."""
        if sequence <= self.database.head().sequence:
            found, row = next(self.commits(sequence + 1), (0, None))
            if row is not None and found == sequence:
                return row
            if sequence in self.damaged_commits:
                raise CorruptRecord(f"The record of commit {sequence} is damaged.")
        raise NotFound("No commit of this number changed HEAD.", sequence=sequence)

    def _walk(self, before: int | None) -> Iterator[tuple[int, _Rows]]:
        head = self.database.head()
        sequence = head.sequence if before is None else min(before - 1, head.sequence)
        newer, is_within = self._readable_above(sequence, head.sequence)
        lost = 0
        for number in range(sequence, -1, -1):
            older = self._readable(number)
            if older is None and number:
                lost = lost or number
                continue
            if lost and not is_within:
                yield from self._unreadable(lost, older, newer)
            lost, is_within, newer = 0, False, older
            if older is not None:
                yield number, self._rows_of(older)
            if number % _PAUSE_EVERY == 0:
                pause()

    def _readable_above(self, sequence: int, last: int) -> tuple[Commit | None, bool]:
        """The first commit above a number that can be read, and whether another one is between."""
        for number in range(sequence + 1, last + 1):
            commit = self._readable(number)
            if commit is not None:
                return commit, number > sequence + 1
        return None, sequence < last

    def _readable(self, number: int) -> Commit | None:
        if not number:
            return None
        try:
            return self.database.commit(number)
        except (CorruptRecord, NotFound):
            self.damaged_commits.add(number)
            return None

    def _unreadable(
        self, last: int, older: Commit | None, newer: Commit | None
    ) -> Iterator[tuple[int, _Rows]]:
        """The commits between two others, up to a last one, as one."""
        template = newer or older
        if template is None:
            return
        head = self.database.head()
        commit = replace(
            template,
            sequence=last,
            time_ms=head.time_ms if newer is None else newer.time_ms,
            root=head.root if newer is None else newer.parent_root,
            parent_root=EMPTY_ROOT if older is None else older.root,
            transactions=_UNKNOWN,
        )
        yield last, self._rows_of(commit)

    def _rows_of(self, commit: Commit) -> _Rows:
        rows = self._known.get(commit.sequence)
        if rows is None:
            version_of = self.database.version_of
            trees = None
            if not self.is_collected(commit.sequence):
                trees = version_of(commit.parent_root), version_of(commit.root)
            rows = dict(commit_rows(commit, trees, MOST_LISTED))
            if len(rows) <= _MOST_ROWS_KEPT and len(self._known) < _MOST_KEPT:
                self._known[commit.sequence] = rows
        return rows
