"""Nodes of a directory's tree: what one holds, and how nodes are cut and joined.

A node keeps its columns as they are stored; an entry is built only when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from struct import Struct
from typing import Any, NamedTuple

from svc.hashing import Hash
from svc.tree.entry import NO_TOTALS, Entry, EntryKind, Totals

__all__ = [
    "INNER_WIDTHS",
    "LEAF_WIDTHS",
    "MAXIMUM_ENTRIES",
    "MAXIMUM_NUMBER",
    "MINIMUM_ENTRIES",
    "NO_ROW",
    "Columns",
    "Inner",
    "Leaf",
    "Node",
    "Summary",
    "entry_summary",
    "inner_columns",
    "join_columns",
    "node_of",
    "slice_columns",
    "splice_columns",
    "summary_after",
    "totals_of",
]

MINIMUM_ENTRIES = 16
MAXIMUM_ENTRIES = 64
MAXIMUM_NUMBER = 2**63 - 1
"""Sizes, times and sums stop here, so that they fit a signed 64-bit integer anywhere."""

Columns = tuple[Any, ...]
"""The rows of a node, one sequence for each column; the first is the list of names."""

# How many elements (of a list) or bytes one row takes in each column.
LEAF_WIDTHS = (1, 1, 32, 24, 1, 1)  # names, kinds, hashes, numbers (size, created, updated), types, extras
INNER_WIDTHS = (1, 32, 56)  # keys, hashes, numbers (those of a Summary)

_FILE, _DIRECTORY, _SYMLINK = int(EntryKind.FILE), int(EntryKind.DIRECTORY), int(EntryKind.SYMLINK)
_KINDS = {int(kind): kind for kind in EntryKind}
_FILE_KIND = EntryKind.FILE  # a member is read through its class for ten times the price
_LEAF_ROW, _INNER_ROW = Struct("<3Q"), Struct("<7Q")
_LEAF_NUMBERS = [Struct(f"<{count * 3}Q") for count in range(MAXIMUM_ENTRIES + 1)]
_INNER_NUMBERS = [Struct(f"<{count * 7}Q") for count in range(MAXIMUM_ENTRIES + 1)]
_ZERO = bytes(8)
_new_tuple = tuple.__new__


class Summary(NamedTuple):
    """What a parent's row says about a node. ``entries`` counts this directory's own entries below it."""

    entries: int
    files: int
    directories: int
    symlinks: int
    size: int
    created_ms: int
    updated_ms: int


_NOTHING = Summary(0, 0, 0, 0, 0, 0, 0)
NO_ROW = Summary(0, 0, 0, 0, 0, MAXIMUM_NUMBER, 0)
"""The summary of no row: it adds nothing to a sum, and is neither the least nor the greatest time."""


class Leaf:
    """A node of level 0: entries of one directory, sorted by name.

    Attributes:
        names: the entries' names, ascending by code point.
        hashes: the entries' hashes, 32 bytes each, in the same order.
        columns: all columns, as ``LEAF_WIDTHS`` lays them out.
        encoded_names: the names as ``svc.tree.codec.encode_names`` gives them, where an edit left them.
    """

    __slots__ = ("_summary", "columns", "encoded_names", "hashes", "names")

    level = 0

    def __init__(self, columns: Columns, summary: Summary | None = None) -> None:
        self.columns = columns
        self.names: list[str] = columns[0]
        self.hashes: bytes = columns[2]
        self.encoded_names: bytes | None = None
        self._summary = summary

    def entry(self, index: int) -> Entry:
        """Builds the entry at a position, 0 <= index < len(names)."""
        _, kinds, hashes, numbers, types, extras = self.columns
        size, created_ms, updated_ms = _LEAF_ROW.unpack_from(numbers, index * 24)
        content_hash = hashes[index * 32 : index * 32 + 32]
        extra = extras[index]
        if extra is None:
            return Entry(_FILE_KIND, content_hash, size, created_ms, updated_ms, types[index])
        record, target, counts = extra
        totals = None if counts is None else totals_of(counts, size, created_ms, updated_ms)
        kind = _KINDS[kinds[index]]
        return Entry(kind, content_hash, size, created_ms, updated_ms, types[index], record, target, totals)

    def spliced(self, start: int, stop: int, rows: Columns) -> Columns:
        """Returns the columns with other rows in place of ``start`` to ``stop``."""
        names, kinds, hashes, numbers, types, extras = self.columns
        names, types, extras = names.copy(), types.copy(), extras.copy()
        names[start:stop], _, _, _, types[start:stop], extras[start:stop] = rows
        return (
            names,
            kinds[:start] + rows[1] + kinds[stop:],
            hashes[: start * 32] + rows[2] + hashes[stop * 32 :],
            numbers[: start * 24] + rows[3] + numbers[stop * 24 :],
            types,
            extras,
        )

    def directory_root(self, index: int) -> Hash | None:
        """The root of the directory at a position; None when the entry there is something else."""
        if self.columns[1][index] != _DIRECTORY:
            return None
        return self.hashes[index * 32 : index * 32 + 32]

    def file_count(self, index: int) -> int:
        """How many files an entry stands for: 1 for a file, those below a directory, 0 for a link."""
        kind = self.columns[1][index]
        if kind == _DIRECTORY:
            count: int = self.columns[5][index][2][0]
            return count
        return 1 if kind == _FILE else 0

    def items(self, start: int = 0) -> list[tuple[str, Entry]]:
        """Returns names and entries from a position on."""
        entry = self.entry
        names = self.names
        return [(names[index], entry(index)) for index in range(start, len(names))]

    def summary(self) -> Summary:
        """What the parent's row says about this node."""
        if self._summary is None:
            self._summary = self._sum_up()
        return self._summary

    def directories(self) -> list[tuple[str, Hash]]:
        """Names and root hashes of the directories among the entries."""
        kinds = self.columns[1]
        if _DIRECTORY not in kinds:
            return []
        hashes = self.hashes
        return [
            (name, hashes[at * 32 : at * 32 + 32])
            for at, (name, kind) in enumerate(zip(self.names, kinds, strict=True))
            if kind == _DIRECTORY
        ]

    def contents(self) -> list[tuple[Hash, bool]]:
        """What the files among the entries keep alive: (hash, whether it is a file record's).

        A hash that is not a record's is that of the file's only chunk. Empty files and links name nothing.
        """
        _, kinds, hashes, numbers, _, extras = self.columns
        found: list[tuple[Hash, bool]] = []
        for at, (kind, extra) in enumerate(zip(kinds, extras, strict=True)):
            if kind != _FILE:
                continue
            if extra is not None:
                found.append((extra[0], True))
            elif numbers[at * 24 : at * 24 + 8] != _ZERO:
                found.append((hashes[at * 32 : at * 32 + 32], False))
        return found

    def _sum_up(self) -> Summary:
        _, kinds, _, packed, _, extras = self.columns
        count = len(kinds)
        if not count:
            return _NOTHING
        numbers = _LEAF_NUMBERS[count].unpack(packed)
        sizes, created_ms, updated_ms = numbers[0::3], min(numbers[1::3]), max(numbers[2::3])
        files = kinds.count(_FILE)
        if files == count:
            return _bounded(count, files, 0, 0, sum(sizes), created_ms, updated_ms)
        below = [extra[2] for extra in extras if extra is not None and extra[2] is not None]
        symlinks = kinds.count(_SYMLINK)
        return _bounded(
            count,
            files + sum([counts[0] for counts in below]),
            len(below) + sum([counts[1] for counts in below]),
            symlinks + sum([counts[2] for counts in below]),
            sum([size for size, kind in zip(sizes, kinds, strict=True) if kind != _SYMLINK]),
            created_ms,
            updated_ms,
        )


class Inner:
    """A node above level 0: its rows are nodes of the level below, in the order of their keys.

    Attributes:
        level: 1 and up; a child's level is one less.
        names: the last key below each child, ascending.
        hashes: the children's hashes, 32 bytes each.
        columns: all columns, as ``INNER_WIDTHS`` lays them out.
        encoded_names: the names as ``svc.tree.codec.encode_names`` gives them, where an edit left them.
    """

    __slots__ = ("_summary", "columns", "encoded_names", "hashes", "level", "names")

    def __init__(self, level: int, columns: Columns, summary: Summary | None = None) -> None:
        self.level = level
        self.columns = columns
        self.names: list[str] = columns[0]
        self.hashes: bytes = columns[1]
        self.encoded_names: bytes | None = None
        self._summary = summary

    def child(self, index: int) -> Hash:
        """The hash of a child, 0 <= index < len(names)."""
        return self.hashes[index * 32 : index * 32 + 32]

    def spliced(self, start: int, stop: int, rows: Columns) -> Columns:
        """Returns the columns with other rows in place of ``start`` to ``stop``."""
        names, hashes, numbers = self.columns
        return (
            names[:start] + rows[0] + names[stop:],
            hashes[: start * 32] + rows[1] + hashes[stop * 32 :],
            numbers[: start * 56] + rows[2] + numbers[stop * 56 :],
        )

    def children(self) -> list[Hash]:
        """The hashes of all children, in order."""
        hashes = self.hashes
        return [hashes[at : at + 32] for at in range(0, len(hashes), 32)]

    def counts(self) -> tuple[int, ...]:
        """How many entries of the directory lie below each child."""
        return _INNER_NUMBERS[len(self.names)].unpack(self.columns[2])[0::7]

    def child_summary(self, index: int) -> Summary:
        """What this node says about a child."""
        return Summary(*_INNER_ROW.unpack_from(self.columns[2], index * 56))

    def summary(self) -> Summary:
        """What the parent's row says about this node."""
        if self._summary is None:
            numbers = _INNER_NUMBERS[len(self.names)].unpack(self.columns[2])
            entries, files, directories, symlinks, size = [sum(numbers[place::7]) for place in range(5)]
            self._summary = _bounded(
                entries, files, directories, symlinks, size, min(numbers[5::7]), max(numbers[6::7])
            )
        return self._summary


Node = Leaf | Inner


def node_of(level: int, columns: Columns, summary: Summary | None = None) -> Node:
    """Returns the node that holds the given columns; ``summary`` is what they sum up to, if it is known."""
    return Inner(level, columns, summary) if level else Leaf(columns, summary)


def slice_columns(columns: Columns, widths: Sequence[int], start: int, stop: int) -> Columns:
    """Returns rows ``start`` to ``stop`` of some columns."""
    return tuple(
        [column[start * width : stop * width] for column, width in zip(columns, widths, strict=True)]
    )


def join_columns(pieces: Sequence[Columns]) -> Columns:
    """Returns the rows of all pieces, in order, as one set of columns; there is at least one piece."""
    if len(pieces) == 1:
        return pieces[0]
    return tuple(
        [
            b"".join(parts) if isinstance(parts[0], bytes) else list(chain.from_iterable(parts))
            for parts in zip(*pieces, strict=True)
        ]
    )


def splice_columns(parts: Sequence[tuple[Columns, int, int]], widths: Sequence[int]) -> Columns:
    """Returns rows ``start`` to ``stop`` of each (columns, start, stop), in order, as one set of columns."""
    parts = [part for part in parts if part[1] < part[2]] or parts[:1]
    spliced: list[Any] = []
    for at, width in enumerate(widths):
        pieces = [columns[at][start * width : stop * width] for columns, start, stop in parts]
        if isinstance(pieces[0], bytes):
            spliced.append(b"".join(pieces))
        else:
            spliced.append(list(chain.from_iterable(pieces)))
    return tuple(spliced)


def totals_of(counts: Sequence[int], size: int, created_ms: int, updated_ms: int) -> Totals:
    """Returns a directory's totals from its (files, directories, symlinks) and its entry's numbers."""
    files, directories, symlinks = counts
    if not (files or directories or symlinks):
        return NO_TOTALS
    return Totals(files, directories, symlinks, size, created_ms, updated_ms)


def inner_columns(key: str, child: Hash, summary: Summary) -> Columns:
    """Returns the one row by which a parent names a child."""
    return ([key], child, _INNER_ROW.pack(*summary))


def entry_summary(entry: Entry) -> Summary:
    """What one entry adds to the sum of its leaf."""
    below, size, created_ms, updated_ms = entry.totals, entry.size, entry.created_ms, entry.updated_ms
    if below is not None:
        directories = below.directories + 1
        return Summary(1, below.files, directories, below.symlinks, size, created_ms, updated_ms)
    if entry.target is not None:
        return Summary(1, 0, 0, 1, 0, created_ms, updated_ms)
    return Summary(1, 1, 0, 0, size, created_ms, updated_ms)


def summary_after(whole: Summary, before: Summary, after: Summary) -> Summary | None:
    """Returns a sum in which one part has changed; None where only summing up anew can tell."""
    entries, files, directories, symlinks, size, first_ms, last_ms = whole
    was_entries, was_files, was_directories, was_symlinks, was_size, was_first_ms, was_last_ms = before
    is_entries, is_files, is_directories, is_symlinks, is_size, is_first_ms, is_last_ms = after
    if was_first_ms == first_ms < is_first_ms or was_last_ms == last_ms > is_last_ms:
        return None
    if MAXIMUM_NUMBER in whole:
        return None
    return _bounded(
        entries - was_entries + is_entries,
        files - was_files + is_files,
        directories - was_directories + is_directories,
        symlinks - was_symlinks + is_symlinks,
        size - was_size + is_size,
        min(first_ms, is_first_ms),
        max(last_ms, is_last_ms),
    )


def _bounded(
    entries: int, files: int, directories: int, symlinks: int, size: int, created_ms: int, updated_ms: int
) -> Summary:
    # Copies share subtrees, so a few dozen of them can make sums that no file system could. Sums stop at
    # the maximum, in whatever order they are made.
    if max(files, directories, symlinks, size) > MAXIMUM_NUMBER:
        files, directories = min(files, MAXIMUM_NUMBER), min(directories, MAXIMUM_NUMBER)
        symlinks, size = min(symlinks, MAXIMUM_NUMBER), min(size, MAXIMUM_NUMBER)
    entries = min(entries, MAXIMUM_NUMBER)
    # Half the price of calling the class.
    return _new_tuple(Summary, (entries, files, directories, symlinks, size, created_ms, updated_ms))
