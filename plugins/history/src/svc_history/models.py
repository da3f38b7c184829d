"""What the operations on the history take and answer."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from svc.plugin import Page

__all__ = [
    "Blame",
    "BlameEntry",
    "BlameLine",
    "BlameQuery",
    "ChangeSide",
    "Commit",
    "CommitDetails",
    "CommitPage",
    "CompareQuery",
    "Comparison",
    "Counts",
    "Document",
    "HistoryPage",
    "HistoryQuery",
    "HistoryRow",
    "LogQuery",
    "Origin",
    "PageQuery",
    "PathChange",
    "TextComparison",
    "TextLine",
    "TextQuery",
]

MOST_ROWS = 1_000

EntryType = Annotated[int, Meta(description="2: a file, 3: a directory, 8: a link.")]
Time = Annotated[int, Meta(description="Unix milliseconds.")]
Version = Annotated[str, Meta(description="A root hash in hex.")]
Limit = Annotated[int, Meta(ge=1, le=MOST_ROWS, description="Most items of the part.")]
Damaged = Annotated[
    list[int] | UnsetType, Meta(description="Numbers of commits that were met and whose records are damaged.")
]
Nodes = Annotated[list[int], Meta(description="Nodes on which it was made first, where several were.")]
After = Annotated[str | None, Meta(description="The next_cursor of the part before.")]


class Origin(Struct, frozen=True):
    """The node of a cluster on which something was made first; the user is who made it there."""

    node_id: int
    timestamp: Annotated[int | None, Meta(description="When, Unix milliseconds; null: not known.")]


class PageQuery(Struct, frozen=True, kw_only=True):
    """Which part of a list is asked for."""

    limit: Limit = MOST_ROWS
    after: After = None


class LogQuery(Struct, frozen=True, kw_only=True):
    """Which commits are listed."""

    path: Annotated[str, Meta(description="Those that touched what is at or below this path.")] = "/"
    fork: Annotated[str | None, Meta(description="Of this fork instead of HEAD.")] = None
    limit: Limit = 20
    after: After = None


class HistoryQuery(PageQuery, frozen=True, kw_only=True):
    """Whether a history goes over every commit that touched the path, or over the snapshots."""

    commits: bool = False


class CompareQuery(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """Which versions are compared, each by anything that names one, and at and below which path."""

    source: str | None = None
    to: str = "HEAD"
    path: str = "/"
    limit: Limit | None = None
    after: After = None


class TextQuery(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """Which two versions of a text are compared, each by anything that names one."""

    source: str | None = None
    to: str = "HEAD"


class BlameQuery(PageQuery, frozen=True, kw_only=True):
    """At which version of HEAD: a snapshot, a root hash, or a time; the first that is given wins."""

    snapshot: str | None = None
    version: str | None = None
    at: Annotated[str | None, Meta(description="A time: HEAD as it was then.")] = None
    text: Annotated[bool, Meta(description="Whether lines come with their text.")] = True


class Counts(Struct, frozen=True):
    """Numbers of files and links that changed."""

    added: int
    modified: int
    deleted: int


class Commit(Struct, frozen=True, kw_only=True):
    """A commit of the log; ``changes`` is null where there are too many to count.

    ``collected`` says that its versions are gone, ``certain`` (false) that it may not have touched the path,
    ``damaged`` that its record can't be read, ``users`` who made it together.
    """

    version: Version | None
    parent: Version | None
    sequence: int
    timestamp: Time
    ref: str
    user: str | None
    message: str | None
    users: list[str] | UnsetType = UNSET
    origin: Origin | UnsetType = UNSET
    nodes: Nodes | UnsetType = UNSET
    changes: Counts | None
    collected: bool | UnsetType = UNSET
    certain: bool | UnsetType = UNSET
    damaged: bool | UnsetType = UNSET


class CommitPage(Page[Commit], frozen=True):
    """A part of the log, newest first."""

    commits: list[Commit]
    damaged_commits: Damaged = UNSET


class ChangeSide(Struct, frozen=True, kw_only=True):
    """What stood at a path on one side of a comparison; null is what the caller may not know."""

    hash: str | None
    size: int | None
    updated_at: Time | None
    entry_type: EntryType
    content_type: str | None
    target: str | UnsetType = UNSET


class PathChange(Struct, frozen=True):
    """How a path differs between two versions: ``added``, ``modified`` or ``deleted``."""

    path: str
    change_type: str
    entry_type: EntryType
    before: ChangeSide | None
    after: ChangeSide | None


class CommitDetails(Page[PathChange], frozen=True, kw_only=True):
    """A commit with a part of what it changed; ``truncated`` where the list ends before all was looked at."""

    version: Version
    parent: Version
    sequence: int
    timestamp: Time
    ref: str
    user: str | None
    message: str | None
    users: list[str] | UnsetType = UNSET
    origin: Origin | UnsetType = UNSET
    nodes: Nodes | UnsetType = UNSET
    changes: list[PathChange]
    totals: Counts | None
    truncated: bool | UnsetType = UNSET
    collected: bool | UnsetType = UNSET
    certain: bool | UnsetType = UNSET
    damaged: bool | UnsetType = UNSET

    @property
    def items(self) -> list[PathChange]:
        """What it changed."""
        return self.changes


class Comparison(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """What differs between two versions in path order, what was compared, and the totals.

    Of a part, ``totals`` is null, and ``truncated`` says that the list ends before all was looked at.
    """

    changes: list[PathChange]
    source: Version
    to: Version
    totals: Counts | None
    has_more: bool | UnsetType = UNSET
    next_cursor: str | UnsetType | None = UNSET
    truncated: bool | UnsetType = UNSET


class TextLine(Struct, frozen=True):
    """A line with its number on each side; null on the side where it is not."""

    before: int | None
    after: int | None
    text: str


class TextComparison(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """How a file differs between two versions.

    ``lines`` are those that differ, with some around them; absent where a side is no text, or too large.
    ``truncated`` says that there are more.
    """

    path: str
    source: Version
    to: Version
    before: ChangeSide | None
    after: ChangeSide | None
    lines: list[TextLine] | UnsetType = UNSET
    truncated: bool = False


class HistoryRow(Struct, frozen=True, kw_only=True):
    """What became of a path at a snapshot, or by a commit."""

    snapshot: str | None
    timestamp: Time
    change_type: str | None
    size: int | None
    content_type: str | UnsetType | None = UNSET
    content_hash: str | UnsetType | None = UNSET
    entry_type: EntryType | UnsetType | None = UNSET
    version: Version
    sequence: int | UnsetType = UNSET
    user: str | UnsetType | None = UNSET
    message: str | UnsetType | None = UNSET
    users: list[str] | UnsetType = UNSET
    origin: Origin | UnsetType = UNSET
    nodes: Nodes | UnsetType = UNSET
    changes: Counts | UnsetType | None = UNSET
    collected: bool | UnsetType = UNSET
    certain: bool | UnsetType = UNSET
    damaged: bool | UnsetType = UNSET


class HistoryPage(Page[HistoryRow], frozen=True):
    """A part of the history of a path, newest first."""

    path: str
    history: list[HistoryRow]
    damaged_commits: Damaged = UNSET


class BlameLine(Struct, frozen=True, kw_only=True):
    """A line and the commit that it comes from; ``path`` where the file stood elsewhere then."""

    line: int
    text: str | UnsetType = UNSET
    version: Version
    sequence: int
    timestamp: Time
    user: str | None
    origin: Origin | UnsetType = UNSET
    nodes: Nodes | UnsetType = UNSET
    path: str | UnsetType = UNSET
    collected: bool | UnsetType = UNSET
    damaged: bool | UnsetType = UNSET


class BlameEntry(Struct, frozen=True, kw_only=True):
    """An entry and the last commit that touched it; null where none is known that the caller may see."""

    path: str
    name: str
    entry_type: EntryType
    size: int | None
    version: Version | None
    sequence: int | None
    timestamp: Time | None
    user: str | None
    origin: Origin | UnsetType = UNSET
    nodes: Nodes | UnsetType = UNSET
    truncated: bool | UnsetType = UNSET
    collected: bool | UnsetType = UNSET
    damaged: bool | UnsetType = UNSET


class Blame(Page[BlameEntry], frozen=True, kw_only=True):
    """Where the lines of a text come from; of a directory, or a file that is no text, its entries."""

    path: str
    version: Version
    entry_type: EntryType
    lines: list[BlameLine] | UnsetType = UNSET
    entries: list[BlameEntry] | UnsetType = UNSET
    truncated: bool | UnsetType = UNSET
    damaged_commits: Damaged = UNSET

    @property
    def items(self) -> list[BlameEntry]:
        """The entries."""
        return self.entries or []


Document = dict[str, Any]
