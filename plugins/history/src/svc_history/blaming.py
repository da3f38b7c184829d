"""Who wrote each line of a file: the commit that brought it, found by walking the file's own history back.

Each step compares two contents of the file. So the cost follows how often it was changed and how large it
is, not how many commits there are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from svc.errors import InvalidInput, NotFound
from svc.plugin import Database, Entry, EntryKind, Hash, Path, Version, format_path, matching_blocks, pause
from svc_history.counting import Counter
from svc_history.cursors import decode_cursor, encode_cursor
from svc_history.log import MOST_EXAMINED, Page, origin_json
from svc_history.reading import History, LookedAt, joined
from svc_history.rows import MIXED, ChangeType, CollectedRow, DirectoryRow
from svc_history.viewer import Viewer

__all__ = [
    "Blame",
    "BlameLimits",
    "LastCommit",
    "Origin",
    "blame_entries",
    "blame_lines",
    "entry_json",
    "last_commit",
    "line_items",
    "lines_of",
    "starting_point",
]

_ENTRIES = "entries"
_EFFORT = 500_000
_PAUSE_EVERY = 32
_MOST_LOOKED_AT = 10_000
_LOOKS_PER_COMPARISON = 10
"""To compare the versions around a commit takes a millisecond where they are not cached, its row less."""
_NOT_KNOWN = dict.fromkeys(("version", "sequence", "timestamp", "user"))


class BlameLimits(Struct, frozen=True):
    """What blame does at most.

    Attributes:
        size: largest file, in bytes, whose lines are blamed.
        scan: bytes of older contents that are read in all; lines older than those count for the oldest.
        seconds: how long the search goes on, for contents that are hard to compare; likewise.
    """

    size: int
    scan: int
    seconds: float = 20.0


class Origin(Struct, frozen=True):
    """The commit that something came from, and the path where the file stood then.

    ``made_at`` has the members of the answer that tell on which node it was made, if not here.
    Where it was collected, or its record cannot be read, it or another such one before it brought what came
    from it.
    """

    sequence: int
    root: Hash
    time_ms: int
    user: str | None
    path: Path
    is_collected: bool = False
    is_damaged: bool = False
    made_at: dict[str, Any] = {}

    def as_json(self) -> dict[str, Any]:
        """The commit as answers show it beside each line."""
        answer: dict[str, Any] = {
            "version": self.root.hex(),
            "sequence": self.sequence,
            "timestamp": self.time_ms,
            "user": self.user,
            **self.made_at,
        }
        if self.is_collected:
            answer["collected"] = True
        if self.is_damaged:
            answer["damaged"] = True
        return answer


class Blame(Struct, frozen=True):
    """The lines of a file, with their ends, and the origin of each.

    ``truncated``: the limits ended the search, so that an origin may be later than the line.
    """

    lines: list[bytes]
    origins: list[Origin]
    truncated: bool


class _Step(Struct, frozen=True):
    """One change of the file: the commit, and what the file held before it (None: it was not there)."""

    origin: Origin
    before: tuple[Version, Entry] | None


def starting_point(database: Database, root: Hash) -> int:
    """Returns the number of the last commit that belongs to the history of a version of HEAD.

    Raises InvalidInput for a version that was never HEAD: it is a fork's, or came from elsewhere.
    """
    head = database.head()
    if root == head.root:
        return head.sequence
    sequence = database.commit_of(root)
    if sequence is None:
        raise InvalidInput(
            "The history is that of HEAD, and this version was never HEAD.", version=root.hex()
        )
    return sequence


def blame_lines(
    history: History, viewer: Viewer, version: Version, path: Path, entry: Entry, limits: BlameLimits
) -> Blame | None:
    """Returns the lines of a file with their origins; None when the file is no text or too large.

    Where a moved file came from counts only if the caller may see it. Raises InvalidInput for a version that
    was never HEAD, and NotFound for a file that the history does not know.
    """
    lines = lines_of(version, entry, limits.size)
    if lines is None:
        return None
    search = _Search(lines)
    scanned = 0
    truncated = False
    end = time.monotonic() + limits.seconds
    for step in _steps(history, viewer, path, starting_point(history.database, version.root)):
        if isinstance(step, LookedAt):
            truncated = time.monotonic() > end
            if truncated:
                search.go_back(None, _origin(step, path))
                break
            continue
        older = None
        if step.before is not None:
            scanned += step.before[1].size
            truncated = scanned > limits.scan or time.monotonic() > end
            older = None if truncated else lines_of(*step.before, limits.size)
        search.go_back(older, step.origin)
        if not search.is_open:
            break
        pause()
    origins = [origin for origin in search.origins if origin is not None]
    if len(origins) < len(lines):
        raise NotFound("The history of this path is not known.", path=format_path(path))
    return Blame(lines, origins, truncated)


def line_items(blame: Blame, path: Path, *, with_text: bool) -> Iterator[dict[str, Any]]:
    """Yields the lines of a blame as answers show them; ``path`` where the file stood elsewhere then."""
    for number, (line, origin) in enumerate(zip(blame.lines, blame.origins, strict=True), start=1):
        answer: dict[str, Any] = {"line": number}
        if with_text:
            answer["text"] = line.decode("utf-8").rstrip("\r\n")
        answer.update(origin.as_json())
        if origin.path != path:
            answer["path"] = format_path(origin.path)
        yield answer


class _Search:
    """Lines on their way back through the contents of their file, until the commit that brought each."""

    def __init__(self, lines: list[bytes]) -> None:
        self.origins: list[Origin | None] = [None] * len(lines)
        self._content = lines
        self._open = {number: number for number in range(len(lines))}  # place in the content: line

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def go_back(self, older: list[bytes] | None, origin: Origin) -> None:
        remaining: dict[int, int] = {}
        for block in matching_blocks(older or [], self._content, effort=_EFFORT):
            for offset in range(block.length):
                line = self._open.pop(block.after + offset, None)
                if line is not None:
                    remaining[block.before + offset] = line
        for line in self._open.values():
            self.origins[line] = origin
        self._open = remaining
        self._content = older or []


def _steps(history: History, viewer: Viewer, path: Path, last: int) -> Iterator[_Step | LookedAt]:
    """The changes of a file's content, newest first, through the moves and copies that brought it there.

    Between them come the commits that were looked at and did not touch it.
    """
    database = history.database
    before: int | None = last + 1
    while before is not None:
        rows = history.looked_at(path, before)
        before = None
        for one in rows:
            row = one.row
            if row is None:
                yield one
                continue
            if isinstance(row, CollectedRow):
                # Which of the commits up to this one brought a line cannot be told any more.
                yield _Step(_origin(one, path), None)
                return
            if row.change is ChangeType.UNCHANGED:
                continue
            if row.change is ChangeType.DELETED or isinstance(row, DirectoryRow):
                return
            origin = _origin(one, path)
            source = path
            if row.change is ChangeType.ADDED:
                source = path if one.is_damaged else _source_of(database, one.sequence, path)
                if source == path or not viewer.shows(source):
                    yield _Step(origin, None)
                    return
            earlier = database.version_of(one.commit.parent_root)
            old = earlier.get(source)
            if old is None or old.kind is not EntryKind.FILE:
                yield _Step(origin, None)
                return
            yield _Step(origin, (earlier, old))
            if source != path:
                path, before = source, one.sequence
                break


def _source_of(database: Database, sequence: int, path: Path) -> Path:
    """Where a commit moved or copied a file from, itself or with a directory above; else where it is."""
    found = path
    for record in reversed(database.commit(sequence).transactions):
        if record.ref != "HEAD":
            continue
        for change in reversed(record.changes):
            if change.source is not None and found[: len(change.path)] == change.path:
                found = change.source + found[len(change.path) :]
    return found


def lines_of(version: Version, entry: Entry, most: int) -> list[bytes] | None:
    """Returns the lines of a text, with their ends; None for no text, or one of more than ``most`` bytes."""
    if entry.kind is not EntryKind.FILE or entry.size > most:
        return None
    content = version.read_all(entry)
    if b"\0" in content:
        return None
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return content.splitlines(keepends=True)


def _origin(one: LookedAt, path: Path) -> Origin:
    commit = one.commit
    which = MIXED if one.row is None else one.row.author
    author = joined(commit.authors, which)
    is_collected = isinstance(one.row, CollectedRow)
    return Origin(
        one.sequence,
        commit.root,
        commit.time_ms,
        author.user,
        path,
        is_collected,
        one.is_damaged,
        origin_json(commit.authors, which) if which != MIXED or len(commit.authors) == 1 else {},
    )


class LastCommit(Struct, frozen=True):
    """The last commit that touched a path, and how many were looked at to find it.

    ``truncated``: the search ended at one that did not touch it; the true one is older. ``origin`` is None
    where that one, or all that is known, may be hidden from the caller.
    """

    origin: Origin | None
    looked_at: int
    truncated: bool = False


def last_commit(
    history: History,
    viewer: Viewer,
    path: Path,
    sequence: int,
    above: Sequence[bytes] | None = None,
    *,
    counter: Counter | None = None,
) -> LastCommit | None:
    """Returns the last commit up to a number that touched a path; None when none is known.

    Args:
        history: where it is looked for.
        viewer: the caller, who may see the path.
        path: the path.
        sequence: the number.
        above: as for ``History.looked_at``.
        counter: of a directory that the caller sees in part, whose hidden changes do not count; else None.
    """
    count = 0
    for count, one in enumerate(history.looked_at(path, sequence + 1, above=above, first_batch=1), start=1):
        if one.row is not None and (counter is None or _is_visible(viewer, path, one, counter)):
            return LastCommit(_origin(one, path), count, not one.is_certain)
        if count == MOST_EXAMINED or (counter is not None and counter.is_exhausted):
            return LastCommit(_origin(one, path) if viewer.sees_below(()) else None, count, truncated=True)
        if count % _PAUSE_EVERY == 0:
            pause()
    return None if counter is None else LastCommit(None, count)


def _is_visible(viewer: Viewer, path: Path, one: LookedAt, counter: Counter) -> bool:
    """Whether the caller may see anything of what a commit did at and below a path."""
    if isinstance(one.row, CollectedRow):
        # Where its record is damaged, nobody knows what it did.
        return not one.is_damaged and viewer.sees_commit(one.sequence, path, is_certain=one.is_certain)[0]
    return viewer.sees_difference(one.commit.parent_root, one.commit.root, path, counter)


def blame_entries(
    history: History, viewer: Viewer, version: Version, path: Path, *, limit: int, after: str | None
) -> Page:
    """Returns a page of a directory's entries, each with the last commit that touched it.

    Of a directory that the caller sees in part, that is the last one of which they may see anything. Raises
    NotFound, and InvalidInput for a bad cursor or a version that was never HEAD.
    """
    start = starting_point(history.database, version.root)
    name = None if after is None else decode_cursor(after, (_ENTRIES, 1))[1]
    rows: list[dict[str, Any]] = []
    last = ""
    left = _MOST_LOOKED_AT
    counter = Counter()
    above = history.prefixes_above((*path, ""), start)
    for child, entry in version.entries(path, after=name):
        here = (*path, child)
        if not viewer.shows(here, directory=entry.kind is EntryKind.DIRECTORY):
            continue
        if len(rows) == limit or left <= 0:
            return Page(rows, encode_cursor(_ENTRIES, last))
        complete = viewer.sums_up(here, entry)
        is_first = counter.looked_at == 0
        last_one = last_commit(history, viewer, here, start, above, counter=None if complete else counter)
        found = _require(last_one, here)
        if counter.is_exhausted and not is_first:
            return Page(rows, encode_cursor(_ENTRIES, last))  # The next page can look at more for it.
        rows.append(_entry_row(here, entry, found, complete=complete))
        left -= found.looked_at * (1 if complete else _LOOKS_PER_COMPARISON)
        last = child
    return Page(rows, None)


def entry_json(history: History, viewer: Viewer, path: Path, entry: Entry, sequence: int) -> dict[str, Any]:
    """Returns a file or link and the last commit that touched it, as answers show them."""
    return _entry_row(path, entry, _require(last_commit(history, viewer, path, sequence), path))


def _require(found: LastCommit | None, path: Path) -> LastCommit:
    if found is None:
        raise NotFound("The history of this path is not known.", path=format_path(path))
    return found


def _entry_row(path: Path, entry: Entry, found: LastCommit, *, complete: bool = True) -> dict[str, Any]:
    row = {
        "path": format_path(path),
        "name": path[-1] if path else "",
        "entry_type": int(entry.kind),
        "size": entry.size if complete else None,
        **(_NOT_KNOWN if found.origin is None else found.origin.as_json()),
    }
    if found.truncated:
        row["truncated"] = True
    return row
