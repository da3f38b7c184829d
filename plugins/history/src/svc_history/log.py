"""The log: commits newest first, of HEAD, of a fork, or of those that touched a path.

A fork's log goes on where the fork began: behind its own commits come those of HEAD that led to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from svc.errors import NotFound, VersionCollected
from svc.plugin import Database, Hash, Path, pause
from svc_history.counting import Counter, counts_of_sides
from svc_history.cursors import decode_cursor, encode_cursor, number_of
from svc_history.reading import History, LookedAt, joined
from svc_history.rows import (
    MIXED,
    Author,
    ChangeType,
    CollectedRow,
    CommitRow,
    Counts,
    DirectoryRow,
    ForkRow,
    PathRow,
)
from svc_history.viewer import Viewer

__all__ = [
    "LogEntry",
    "Page",
    "author_json",
    "counts_json",
    "entry_of_commit",
    "find_commit",
    "log_page",
    "origin_json",
    "place_before",
    "sequence_of_place",
    "visible_entry",
]

HEAD = "HEAD"
MOST_EXAMINED = 1_000
"""Commits that one page looks at, at most: where many are hidden from the caller, or did something to a
directory above and nothing to the path, a page may be short."""

_OF_HEAD, _OF_FORK = "head", "fork"
_LONGEST_NUMBER = 12
_PAUSE_EVERY = 32

_Candidate: TypeAlias = "tuple[str, int, LogEntry | None]"
"""A row that was looked at: whose commit, its number, and the entry (None: it did not touch the path)."""


class LogEntry(Struct, frozen=True):
    """One commit of the log.

    Attributes:
        ref: ``HEAD``, or the fork that it changed.
        root: root hash of the version that it made; None for one that ended a fork.
        parent: root hash of the version before; None for one that began a fork.
        which: the one of the authors that the log is about, or ``MIXED``.
        counts: what it did, or did to the path that the log is about; None: more than is counted.
        shows_messages: whether the caller may read what the authors wrote.
        is_collected: whether its versions were collected, so that nothing more is known of it.
        is_certain: whether it touched the path that the log is about.
        is_damaged: whether its record cannot be read: it, and perhaps others before it, did what is counted.
    """

    sequence: int
    ref: str
    time_ms: int
    root: Hash | None
    parent: Hash | None
    authors: tuple[Author, ...]
    which: int
    counts: Counts | None
    shows_messages: bool = True
    is_collected: bool = False
    is_certain: bool = True
    is_damaged: bool = False

    def as_json(self) -> dict[str, Any]:
        """The commit as routes and commands show it."""
        answer = {
            "version": None if self.root is None else self.root.hex(),
            "parent": None if self.parent is None else self.parent.hex(),
            "sequence": self.sequence,
            "timestamp": self.time_ms,
            "ref": self.ref,
            **author_json(self.authors, self.which, shows_messages=self.shows_messages),
            "changes": counts_json(self.counts),
        }
        if self.is_collected:
            answer["collected"] = True
        if not self.is_certain:
            answer["certain"] = False
        if self.is_damaged:
            answer["damaged"] = True
        return answer


class Page(Struct, frozen=True):
    """One page of a list; ``truncated``: the list ends before all was looked at."""

    rows: list[Any]
    next_cursor: str | None
    truncated: bool = False


def counts_json(counts: Counts | None) -> dict[str, int] | None:
    """Returns counts as answers show them."""
    return None if counts is None else counts._asdict()


def author_json(authors: tuple[Author, ...], which: int, *, shows_messages: bool) -> dict[str, Any]:
    """Returns ``user`` and ``message`` of a commit, and ``users`` where several made it together."""
    if which == MIXED and len(authors) > 1 and not shows_messages:
        # Who of them did what the caller may see is not known, and who did the rest is not for the caller.
        return {"user": None, "message": None}
    author = joined(authors, which)
    answer: dict[str, Any] = {"user": author.user, "message": author.message if shows_messages else None}
    users = list(dict.fromkeys(one.user for one in authors if one.user is not None))
    if which == MIXED and len(users) > 1:
        answer["users"] = users
    return answer | origin_json(authors, which)


def origin_json(authors: tuple[Author, ...], which: int) -> dict[str, Any]:
    """Returns ``origin``, the node of what was made elsewhere first; ``nodes`` where there are several."""
    chosen = authors if which == MIXED else authors[which : which + 1]
    origins = [one.origin for one in chosen]
    nodes = list(dict.fromkeys(one.node_id for one in origins if one is not None))
    if len(nodes) == 1 and None not in origins:
        times = {one.time_ms for one in origins if one is not None}
        return {"origin": {"node_id": nodes[0], "timestamp": times.pop() if len(times) == 1 else None}}
    return {"nodes": nodes} if nodes else {}


def log_page(
    history: History, viewer: Viewer, *, path: Path, fork: str | None, limit: int, after: str | None
) -> Page:
    """Returns a page of the log of HEAD, or of a fork: commits that touched what is at or below the path.

    ``after`` is the cursor of the page before: InvalidInput where no log gave it. NotFound for no such fork.
    """
    stage, before = _OF_HEAD if fork is None else _OF_FORK, None
    if fork is not None:
        history.database.resolve_version(fork=fork)
    if after is not None:
        kinds = [(_OF_HEAD, 1)] if fork is None else [(_OF_HEAD, 1), (_OF_FORK, 1)]
        stage, number = decode_cursor(after, *kinds)
        before = number_of(number)
    rows: list[dict[str, Any]] = []
    place = ""
    counter = Counter()
    for examined, (kind, sequence, entry) in enumerate(_candidates(history, path, fork, stage, before)):
        if len(rows) >= limit or examined >= MOST_EXAMINED:
            return Page(rows, place)
        is_first = counter.looked_at == 0
        visible = None if entry is None else visible_entry(viewer, entry, path, counter)
        if counter.is_exhausted and not is_first:
            return Page(rows, place)  # The next page can count more for it.
        if visible is not None:
            rows.append(visible.as_json())
        place = encode_cursor(kind, str(sequence))
        if examined % _PAUSE_EVERY == 0:
            pause()
    return Page(rows, None)


def place_before(fork: str | None, sequence: int) -> str:
    """Returns the cursor behind which the log of HEAD, or a fork's own part of it, goes on below a commit."""
    return encode_cursor(_OF_HEAD if fork is None else _OF_FORK, str(sequence))


def sequence_of_place(cursor: str) -> tuple[str, int]:
    """Returns whose commit a cursor of the log names (``head`` or ``fork``), and its number."""
    stage, number = decode_cursor(cursor, (_OF_HEAD, 1), (_OF_FORK, 1))
    return stage, number_of(number)


def find_commit(history: History, viewer: Viewer, name: str) -> LogEntry:
    """Returns the commit of HEAD that a text names: its number, or any name of the version that it made.

    Raises NotFound where there is none, or none of which the caller may see anything.
    """
    if name.isascii() and name.isdigit() and len(name) <= _LONGEST_NUMBER:
        sequence: int | None = int(name)
    else:
        sequence = history.database.commit_of(_named_root(history.database, name))
    if sequence is None:
        raise NotFound("No commit brought HEAD to this version; it is a fork's or came from elsewhere.")
    found = entry_of_commit(history, sequence, history.commit(sequence))
    entry = visible_entry(viewer, found, (), Counter())
    if entry is None:
        raise NotFound("No commit of this number changed HEAD.", sequence=sequence)
    return entry


def _named_root(database: Database, name: str) -> Hash:
    """The root of a version, also of one that was collected: its commit is there."""
    try:
        return database.named_version(name)
    except VersionCollected as error:
        return bytes.fromhex(error.details["version"])


def entry_of_commit(history: History, sequence: int, row: CommitRow) -> LogEntry:
    """Returns the log's entry of a commit of HEAD."""
    return LogEntry(
        sequence,
        HEAD,
        row.time_ms,
        row.root,
        row.parent_root,
        row.authors,
        MIXED,
        row.counts,
        is_collected=history.is_collected(sequence),
        is_damaged=sequence in history.damaged_commits,
    )


def visible_entry(viewer: Viewer, entry: LogEntry, path: Path, counter: Counter) -> LogEntry | None:
    """Returns of an entry what the caller may see, counted; None where all of its changes are hidden.

    Where the counter meets its limit, what was not looked at counts as hidden.
    """
    if viewer.sees_all and (entry.counts is not None or entry.is_collected):
        return entry
    if entry.is_collected and entry.is_damaged:
        return None  # Nobody knows what it did.
    if entry.is_collected:
        sees, sees_all = viewer.sees_commit(entry.sequence, path, is_certain=entry.is_certain)
        return replace(entry, shows_messages=sees_all) if sees else None
    if entry.root is None or entry.parent is None:
        return replace(entry, shows_messages=False)
    sees, counts = viewer.visible_counts(entry.parent, entry.root, path, counter)
    if not sees:
        return None
    return replace(entry, counts=counts, shows_messages=viewer.sees_all_changes(entry.parent, entry.root))


def _candidates(
    history: History, path: Path, fork: str | None, stage: str, before: int | None
) -> Iterator[_Candidate]:
    if stage == _OF_FORK and fork is not None:
        began: tuple[int, ForkRow] | None = None
        # From the row of the cursor on: where the fork began, what follows is HEAD's.
        for sequence, row in history.of_fork(fork, None if before is None else before + 1):
            is_passed = before is not None and sequence >= before
            if row.parent_root is None:
                began = (sequence, row)
                if not (path or is_passed):
                    counts = None if row.is_collected else Counts()
                    yield _OF_FORK, sequence, _fork_entry(fork, sequence, row, counts)
                if row.is_collected and not row.may_begin:
                    continue
                break
            if not is_passed:
                yield _OF_FORK, sequence, _entry_of_fork(history.database, fork, sequence, row, path)
        if began is None or began[1].is_collected:
            return  # Which commits of HEAD led to it is not known any more.
        before = _before_of_head(history.database, began[0], began[1].root)
        if before is None:
            return
    if path:
        for one in history.looked_at(path, before):
            yield _OF_HEAD, one.sequence, None if one.row is None else _entry_of_path(history, one, one.row)
    else:
        for sequence, commit in history.commits(before):
            yield _OF_HEAD, sequence, entry_of_commit(history, sequence, commit)


def _entry_of_path(history: History, one: LookedAt, row: PathRow) -> LogEntry:
    entry = entry_of_commit(history, one.sequence, one.commit)
    return replace(entry, which=row.author, counts=_counts_of_row(row), is_certain=one.is_certain)


def _counts_of_row(row: PathRow) -> Counts | None:
    if isinstance(row, CollectedRow):
        return None
    if isinstance(row, DirectoryRow):
        return row.counts
    return Counts(
        int(row.change is ChangeType.ADDED),
        int(row.change in (ChangeType.MODIFIED, ChangeType.UNCHANGED)),
        int(row.change is ChangeType.DELETED),
    )


def _entry_of_fork(database: Database, fork: str, sequence: int, row: ForkRow, path: Path) -> LogEntry | None:
    if not path or row.root is None or row.parent_root is None:
        return _fork_entry(fork, sequence, row, row.counts)
    before = database.version_of(row.parent_root).get(path)
    after = database.version_of(row.root).get(path)
    if before == after:
        return None
    return _fork_entry(fork, sequence, row, counts_of_sides(before, after))


def _fork_entry(fork: str, sequence: int, row: ForkRow, counts: Counts | None) -> LogEntry:
    return LogEntry(
        sequence,
        f"forks/{fork}",
        row.time_ms,
        row.root,
        row.parent_root,
        row.authors,
        MIXED,
        counts,
        is_collected=row.is_collected,
    )


def _before_of_head(database: Database, sequence: int, root: Hash | None) -> int | None:
    """Behind which commit of HEAD a fork's log goes on; None when its root was never HEAD's."""
    if root is None:
        return None
    commit = database.commit(sequence)
    if commit.root == root:
        return sequence + 1
    if commit.parent_root == root:
        return sequence
    first = database.commit_of(root)
    return first + 1 if first is not None and first <= sequence else None
