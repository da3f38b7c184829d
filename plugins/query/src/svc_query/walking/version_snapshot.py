"""The files of one version, in path order, numbered as they come."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from svc.plugin import Entry, EntryKind, Path, Version, format_path, is_system_path
from svc_query.api import Value
from svc_query.executing.budget import Budget
from svc_query.executing.visibility import Caller
from svc_query.index_configuration import directory_of, is_configuration
from svc_query.snapshot import VIRTUAL_FIELDS, Coverage, Document, FieldIndex, Progress

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["Extract", "WalkedSnapshot"]

Extract: TypeAlias = Callable[[Path, Entry], Mapping[str, Sequence[Value]]]
"""Reads a file and returns the values of its fields, those that are virtual left out."""


class WalkedSnapshot:
    """All files of a version that a caller may read at and below some places; no others are numbered.

    ``sequence`` is the number of a commit, for cursors. ``truncated_at`` is the last path that was looked at,
    when there are more than that; else None. ``configured`` are the directories with a configuration. What
    is in a directory of configuration is numbered only where that is what is asked for.
    """

    indexed = False
    knows_tail = False

    def __init__(
        self,
        version: Version,
        sequence: int,
        caller: Caller,
        extract: Extract,
        budget: Budget,
        entries: int,
        after: Path | None = None,
    ) -> None:
        from pyroaring import BitMap

        self.sequence = sequence
        self.epoch = version.root
        self._coverage = Coverage({})
        self._extract = extract
        self._budget = budget
        self._paths: list[Path] = []
        self._entries: list[Entry] = []
        self.configured: list[Path] = []
        self._parsed: tuple[int, Mapping[str, Sequence[Value]]] | None = None
        self.truncated_at: Path | None = None
        self._walk(version, caller, entries, after)
        self._live = BitMap()
        if self._paths:
            self._live.add_range(0, len(self._paths))

    @property
    def paths(self) -> Sequence[Path]:
        """The paths of the files, in order; not to be changed."""
        return self._paths

    def use_coverage(self, coverage: Coverage) -> None:
        """Says what the configurations of the version say of these files."""
        self._coverage = coverage

    def _walk(self, version: Version, caller: Caller, entries: int, after: Path | None) -> None:
        looked_at = 0
        last: Path | None = None
        for part in sorted(path for path, _ in caller.parts):
            for path, entry in _files(version, part, after):
                if looked_at >= entries:
                    self.truncated_at = last
                    return
                looked_at += 1
                last = path
                self._budget.tick()
                if entry.kind is not EntryKind.FILE or is_system_path(path) or not caller.may(path):
                    continue
                directory = directory_of(path)
                if directory is not None:
                    self.configured.append(directory)
                if not is_configuration(path) or is_configuration(part):
                    self._paths.append(path)
                    self._entries.append(entry)

    def live(self) -> BitMap:
        """Returns the numbers of all files."""
        return self._live

    def below(self, path: Path) -> BitMap:
        """Returns the numbers of the file at a path and of those below it."""
        from pyroaring import BitMap

        low, high = self._slice(path)
        found = BitMap()
        if low < high:
            found.add_range(low, high)
        return found

    def count_below(self, path: Path) -> int:
        """Returns how many files are at and below a path."""
        low, high = self._slice(path)
        return high - low

    def in_path_order(
        self, path: Path, *, after: Path | None = None, reverse: bool = False, among: BitMap | None = None
    ) -> Iterator[tuple[Path, int]]:
        """Yields (path, number) at and below a path, in path order; all of them, whatever is wanted."""
        low, high = self._slice(path)
        if reverse:
            if after is not None:
                high = min(high, bisect_left(self._paths, after))
            numbers: Iterable[int] = range(high - 1, low - 1, -1)
        else:
            if after is not None:
                low = max(low, bisect_right(self._paths, after))
            numbers = range(low, high)
        for number in numbers:
            yield self._paths[number], number

    def document(self, number: int) -> Document | None:
        """Returns a file as a document; its fields are read when ``values`` is asked for them."""
        if not 0 <= number < len(self._paths):
            return None
        entry = self._entries[number]
        return Document(
            number,
            self._paths[number],
            entry.size,
            entry.content_type,
            entry.created_ms,
            entry.updated_ms,
            entry.hash,
            {},
        )

    def paths_of(self, numbers: Iterable[int]) -> Iterator[tuple[Path, int]]:
        """Yields the paths of those that there are."""
        for number in numbers:
            if 0 <= number < len(self._paths):
                yield self._paths[number], number

    def documents(self, numbers: Iterable[int]) -> Iterator[Document]:
        """Yields those that there are."""
        for number in numbers:
            document = self.document(number)
            if document is not None:
                yield document

    def values(self, document: Document, field: str) -> Sequence[Value]:
        """Returns all values of a field; reads the file, unless it was the last one."""
        if field in VIRTUAL_FIELDS:
            return virtual_values(document, field)
        if field not in self._coverage.fields:
            return ()
        if self._parsed is None or self._parsed[0] != document.id:
            found = self._extract(document.path, self._entries[document.id])
            self._parsed = document.id, found
        return self._parsed[1].get(field, ())

    def tail(self) -> Sequence[Document]:
        """Nothing is flushed here, and nothing waits for it."""
        return ()

    def indexes(self, field: str) -> Sequence[FieldIndex]:
        """There are none."""
        return ()

    def coverage(self, path: Path) -> Coverage:
        """Returns what the configurations of the version say where the caller looks."""
        return self._coverage

    def progress(self, path: Path) -> Progress | None:
        """Nothing is reindexed here."""
        return None

    def waiting(self, path: Path) -> int:
        """Nothing waits: files are read as they are asked for."""
        return 0

    def _slice(self, path: Path) -> tuple[int, int]:
        if not path:
            return 0, len(self._paths)
        low = bisect_left(self._paths, path)
        # Behind everything below the path comes whatever is at a longer last name.
        high = bisect_left(self._paths, (*path[:-1], path[-1] + "\0"))
        return low, high


def virtual_values(document: Document, field: str) -> Sequence[Value]:
    """Returns the values of a virtual field of a document."""
    name = document.path[-1] if document.path else ""
    value: Value
    if field == "@path":
        value = format_path(document.path)
    elif field == "@filename":
        value = name
    elif field == "@extension":
        stem, dot, extension = name.rpartition(".")
        value = extension.lower() if dot and stem.strip(".") else None
        if not value:
            return ()
    elif field == "@content_type":
        value = document.content_type
        if value is None:
            return ()
    elif field == "@hash":
        value = document.hash.hex()
    elif field == "@size":
        value = document.size
    else:
        value = document.created_ms if field == "@created_at" else document.updated_ms
    return (value,)


def _files(version: Version, part: Path, after: Path | None) -> Iterator[tuple[Path, Entry]]:
    if after is not None and after[: len(part)] != part:
        if part < after:
            return
        after = None
    entry = version.get(part)
    if entry is None:
        return
    if entry.kind is EntryKind.DIRECTORY or not part:
        yield from version.walk(part, files_only=True, after=after)
    elif part != after:
        yield part, entry
