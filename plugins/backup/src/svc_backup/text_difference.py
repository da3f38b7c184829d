"""What differs between two versions, as text for people: unified differences, file by file.

A terminal shows the lines, and ``patch -p1`` takes them. Memory holds one pair of files at a time, and the
work for each is bounded, however large they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TextIO

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from svc.plugin import Change, Entry, EntryKind, Path, Version, matching_blocks
from svc_cli import terminal_text

__all__ = ["DifferenceCounts", "write_changes", "write_text_differences"]

LARGEST_TEXT = 16 * 1024 * 1024
"""Bytes of a file that is compared line by line."""

_NOTHING = "/dev/null"
_NO_END = "\\ No newline at end of file"
_STYLES = {"header": "bold", "hunk": "cyan", "-": "red", "+": "green", " ": "", "note": "yellow"}
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

_Write = Callable[[str, str], None]
_Region = tuple[int, int, int, int]


class ReadsContents(Protocol):
    """A version whose contents can be read, here or at a server."""

    def read_all(self, entry: Entry) -> bytes:
        """Returns the whole content of a file."""


class DifferenceCounts(Struct, frozen=True):
    """How much differs between two versions: files and links, and lines of text.

    What has another content, target, type or kind is modified; what has other times only is ``touched``, and
    not shown.
    """

    added: int = 0
    modified: int = 0
    deleted: int = 0
    touched: int = 0
    lines_added: int = 0
    lines_removed: int = 0


def write_text_differences(
    before: Version, after: Version, path: Path, out: TextIO, *, color: bool, context: int = 3
) -> DifferenceCounts:
    """Writes how the files of two versions differ, in path order. Blocks for as long as that takes.

    Text is shown as a unified difference, with ``context`` equal lines around each change; of binary files
    and of texts over 16 MiB only the sizes. On a terminal control characters of contents and names are shown
    as escapes, and do nothing; a file gets the contents as they are. ``color`` suits a terminal only.
    """
    return write_changes(before.diff(after, path), before, after, out, color=color, context=context)


def write_changes(
    changes: Iterable[Change],
    before: ReadsContents,
    after: ReadsContents,
    out: TextIO,
    *,
    color: bool,
    context: int = 3,
) -> DifferenceCounts:
    """Writes differences that are known, wherever the contents are; see ``write_text_differences``."""
    writer = _Writer(before, after, _line_writer(out, color), context)
    for change in changes:
        writer.take(change)
    return DifferenceCounts(*writer.counts, *writer.lines)


class _Writer:
    def __init__(self, before: ReadsContents, after: ReadsContents, write: _Write, context: int) -> None:
        self._before = before
        self._after = after
        self._write = write
        self._context = context
        self.counts = [0, 0, 0, 0]
        self.lines = [0, 0]

    def take(self, change: Change) -> None:
        old, new = _content(change.before), _content(change.after)
        if old is None and new is None:
            self._empty_directory(change)
            return
        which = 0 if old is None else 2 if new is None else 1
        if old is not None and new is not None:
            if _same(old, new):
                self.counts[3] += 1
                return
            if old.kind is not new.kind:
                # A file gave way to a link, or the reverse: one goes, one comes.
                self.counts[1] += 1
                self._one(change.path, old, None)
                self._one(change.path, None, new)
                return
        self.counts[which] += 1
        self._one(change.path, old, new)

    def _empty_directory(self, change: Change) -> None:
        for sign, entry in (("deleted", change.before), ("new", change.after)):
            if entry is not None and entry.totals is not None and not _holds_something(entry):
                if change.before is not None and change.after is not None and sign == "deleted":
                    continue
                name = "/".join(change.path)
                self._write("header", f"diff a/{name}/ b/{name}/")
                self._write("header", f"{sign} empty directory")

    def _one(self, path: Path, old: Entry | None, new: Entry | None) -> None:
        name = "/".join(path)
        entry = new or old
        assert entry is not None, "a difference has a side"
        self._write("header", f"diff a/{name} b/{name}")
        what = "link" if entry.kind is EntryKind.SYMLINK else "file"
        if old is None or new is None:
            self._write("header", f"{'new' if old is None else 'deleted'} {what}")
        elif old.content_type != new.content_type:
            self._write("header", f"content type {old.content_type or '-'} => {new.content_type or '-'}")
        if old is not None and new is not None and old.hash == new.hash:
            return
        left = _text(self._before, old)
        right = _text(self._after, new)
        if isinstance(left, str) or isinstance(right, str):
            reason = left if isinstance(left, str) else right
            self._write("note", f"{reason} differs: {_size(old)} => {_size(new)}")
            return
        if left or right:
            self._write("header", f"--- {_side('a', name, old)}")
            self._write("header", f"+++ {_side('b', name, new)}")
        self._hunks(left, right)

    def _hunks(self, left: list[bytes], right: list[bytes]) -> None:
        for regions in _grouped(_regions(left, right), self._context):
            first, last = regions[0], regions[-1]
            lead = min(self._context, first[0])
            trail = min(self._context, len(left) - last[1])
            spans = _span(first[0] - lead, last[1] + trail), _span(first[2] - lead, last[3] + trail)
            self._write("hunk", f"@@ -{spans[0]} +{spans[1]} @@")
            place = first[0] - lead
            for i1, i2, j1, j2 in regions:
                self._lines(" ", left[place:i1])
                self._lines("-", left[i1:i2])
                self._lines("+", right[j1:j2])
                self.lines[0] += j2 - j1
                self.lines[1] += i2 - i1
                place = i2
            self._lines(" ", left[place : place + trail])

    def _lines(self, sign: str, lines: Sequence[bytes]) -> None:
        for line in lines:
            self._write(sign, sign + line.removesuffix(b"\n").decode("utf-8", "backslashreplace"))
            if not line.endswith(b"\n"):
                self._write(sign, _NO_END)


def _regions(left: list[bytes], right: list[bytes]) -> Iterator[_Region]:
    """Where the lines differ: from and to on the left, from and to on the right."""
    i = j = 0
    for block in matching_blocks(left, right):
        if (block.before, block.after) != (i, j):
            yield i, block.before, j, block.after
        i, j = block.before + block.length, block.after + block.length
    if (len(left), len(right)) != (i, j):
        yield i, len(left), j, len(right)


def _grouped(regions: Iterator[_Region], context: int) -> Iterator[list[_Region]]:
    """Regions that are so close that what is shown around them would overlap, together."""
    group: list[_Region] = []
    for region in regions:
        if group and region[0] - group[-1][1] > 2 * context:
            yield group
            group = []
        group.append(region)
    if group:
        yield group


def _span(start: int, end: int) -> str:
    """A range of lines as the head of a hunk has it: counted from 1, or the line before when it is empty."""
    count = end - start
    if count == 0:
        return f"{start},0"
    return f"{start + 1}" if count == 1 else f"{start + 1},{count}"


def _content(entry: Entry | None) -> Entry | None:
    """A file's or link's entry; a directory holds nothing by itself."""
    return None if entry is None or entry.kind is EntryKind.DIRECTORY else entry


def _same(old: Entry, new: Entry) -> bool:
    return (old.kind, old.hash, old.content_type) == (new.kind, new.hash, new.content_type)


def _holds_something(directory: Entry) -> bool:
    below = directory.totals
    return below is not None and bool(below.files or below.directories or below.symlinks)


def _text(version: ReadsContents, entry: Entry | None) -> list[bytes] | str:
    """The lines of a content with their ends; or what it is instead of text."""
    if entry is None:
        return []
    if entry.kind is EntryKind.SYMLINK:
        return [(entry.target or "").encode("utf-8")]
    if entry.size > LARGEST_TEXT:
        return "large file"
    content = version.read_all(entry)
    return "binary file" if b"\0" in content else _split(content)


def _split(content: bytes) -> list[bytes]:
    """Lines end with a line feed and with nothing else, as for ``diff`` and ``patch``."""
    lines = content.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _side(letter: str, name: str, entry: Entry | None) -> str:
    if entry is None:
        return _NOTHING
    # A tab ends a name that holds spaces, where ``patch`` would take the rest for a time.
    return f"{letter}/{name}" + ("\t" if " " in name else "")


def _size(entry: Entry | None) -> str:
    if entry is None:
        return "none"
    amount = float(entry.size)
    for unit in _UNITS:
        if amount < 1024 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{entry.size:,} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"


def _line_writer(out: TextIO, color: bool) -> _Write:
    if not color:
        escaping = out.isatty()

        def write_plain(kind: str, line: str) -> None:
            if escaping or kind in ("header", "note"):
                line = terminal_text(line, keep_tabs=True)
            out.write(line + "\n")

        return write_plain
    console = Console(file=out, force_terminal=True, highlight=False, markup=False, emoji=False)

    def write_colored(kind: str, line: str) -> None:
        console.print(Text(terminal_text(line, keep_tabs=True), style=_STYLES[kind]), soft_wrap=True)

    return write_colored
