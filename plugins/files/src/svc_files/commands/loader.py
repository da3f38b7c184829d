"""Brings a directory tree into a store: compares directory by directory, and sends what differs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from svc.errors import Conflict, NotFound
from svc.plugin import EntryKind, Hash, Path, format_path, parse_hash
from svc_files.client import CommitCounts, FileInfo, FileStore, Importer, SourceFile, SourceUnreadable
from svc_files.client.charsets import NotInEncoding, type_with_charset
from svc_files.client.source import hash_source, is_clamped, time_in_ms
from svc_files.commands.interruption import Interruption
from svc_files.commands.report import TransferReport
from svc_files.commands.source_tree import SourceDirectory, SourceLink, SourceTree

__all__ = ["LoadOptions", "Loader", "PlanImporter", "resolve_base"]


class LoadOptions(Struct, frozen=True):
    """How a tree is compared.

    Attributes:
        keep_times: the files' own times are stored, and equal size and time mean an equal file.
        mirror: what the directory does not have is removed from the store.
        checksum: read every file, also where size and time are equal.
        encoding: of texts that are not UTF-8; it becomes the ``charset`` of their media types.
    """

    keep_times: bool = False
    mirror: bool = False
    checksum: bool = False
    encoding: str | None = None


class _Waiting(Struct, frozen=True):
    path: Path
    location: str
    known: FileInfo | None = None


class Loader:
    """Loads one tree."""

    def __init__(
        self,
        store: FileStore,
        version: str,
        importer: Importer,
        tree: SourceTree,
        options: LoadOptions,
        report: TransferReport,
        interruption: Interruption,
    ) -> None:
        self._store = store
        self._version = version
        self._importer = importer
        self._tree = tree
        self._options = options
        self._report = report
        self._interruption = interruption

    def run(self, base: FileInfo | None) -> None:
        """Goes through the tree, depth first, in order of names; the store has no directory without ``base``.

        Raises Interrupted where the user asked for an end: the importer's context must be left with it.
        """
        waiting = [_Waiting(self._tree.base, self._tree.root, base)]
        while waiting:
            self._interruption.check()
            waiting.extend(reversed(self._directory(waiting.pop())))

    def _directory(self, at: _Waiting) -> list[_Waiting]:
        found = self._tree.read(at.path, at.location)
        for problem in found.problems:
            tell = self._report.note if problem.harmless else self._report.problem
            tell(problem.location, problem.reason)
        children: dict[str, FileInfo] = {}
        if at.known is not None:
            children = {child.name: child for child in self._store.children(at.path, self._version)}
            # What is excluded is not removed either.
            found.names.update(name for name, child in children.items() if self._tree.excludes(child.path))
        for file in found.files:
            self._interruption.check()
            self._file(file, children.get(file.path[-1]))
        for link in found.links:
            self._link(link, children.get(link.path[-1]))
        below = [
            _Waiting(path, location, known)
            for path, location in found.directories
            for allowed, known in [self._subdirectory(path, location, children.get(path[-1]))]
            if allowed
        ]
        if found.complete and not (found.is_empty and self._empty_directory(found, at.known, children)):
            self._remove_others(found, children)
        return below

    def _remove_others(self, found: SourceDirectory, children: dict[str, FileInfo]) -> None:
        if self._options.mirror:
            for name, child in children.items():
                if name not in found.names:
                    self._importer.remove(child.path)

    def _file(self, file: SourceFile, known: FileInfo | None) -> None:
        if self._options.keep_times and is_clamped(file.mtime_ns):
            reason = "its time is before 1970 or after 9999, and the nearest is kept"
            self._report.note(file.location, reason, skipped=False)
        if self._options.encoding is not None:
            file = self._with_charset(file, self._options.encoding)
        if known is None:
            self._importer.put_file(file)
        elif known.kind is EntryKind.FILE:
            self._changed_file(file, known)
        elif self._may_replace(known, file.location):
            self._importer.clear(known.path)
            self._importer.put_file(file)

    def _with_charset(self, file: SourceFile, encoding: str) -> SourceFile:
        try:
            return replace(file, content_type=type_with_charset(file.location, encoding))
        except NotInEncoding:
            self._report.note(file.location, f"it is not in {encoding}, and has no charset", skipped=False)
        except SourceUnreadable:
            pass  # Who stores it says so.
        return file

    def _changed_file(self, file: SourceFile, known: FileInfo) -> None:
        if file.content_type not in (None, known.content_type):
            self._importer.put_file(file)
            return
        same_size = known.size == file.size
        same_times = known.updated_ms == file.time_ms and known.created_ms == file.time_ms
        if self._options.keep_times:
            says_it = same_times and not is_clamped(file.mtime_ns)  # else many times look the same
            if same_size and says_it and not self._options.checksum and not known.is_lost:
                self._report.unchanged(1)
                return
            compare = same_size and same_times
        else:
            compare = same_size
        self._importer.put_file(file, _hash_of(known) if compare and not known.is_lost else None)

    def _link(self, link: SourceLink, known: FileInfo | None) -> None:
        time_ms = time_in_ms(link.mtime_ns) if self._options.keep_times else None
        if known is not None and known.kind is EntryKind.SYMLINK:
            same_time = time_ms is None or known.updated_ms == known.created_ms == time_ms
            if known.target == link.target and same_time:
                return
        elif known is not None:
            if not self._may_replace(known, link.location):
                return
            self._importer.clear(known.path)
        self._importer.put_link(link.path, link.target, time_ms)

    def _subdirectory(
        self, path: Path, location: str, known: FileInfo | None
    ) -> tuple[bool, FileInfo | None]:
        if known is None or known.kind is EntryKind.DIRECTORY:
            return True, known
        if not self._options.mirror:
            self._report.problem(location, f"{format_path(path)} is not a directory in the database")
            return False, None
        self._importer.clear(path)
        return True, None

    def _may_replace(self, known: FileInfo, location: str) -> bool:
        """Whether a file or link may take another's place; a directory's only in a mirror."""
        if known.kind is not EntryKind.DIRECTORY or self._options.mirror:
            return True
        self._report.problem(location, f"{format_path(known.path)} is a directory in the database")
        return False

    def _empty_directory(
        self, found: SourceDirectory, known: FileInfo | None, children: dict[str, FileInfo]
    ) -> bool:
        """Makes an empty directory; returns whether everything that was in its place is gone by that."""
        if not found.path:
            return False
        time_ms = time_in_ms(found.mtime_ns) if self._options.keep_times else None
        if known is not None:
            same_time = (
                time_ms is None or not known.is_complete or known.updated_ms == known.created_ms == time_ms
            )
            kept = children.keys() & found.names if self._options.mirror else children.keys()
            if kept or (same_time and not children):
                return False
            # A directory's time cannot be set, so it is made anew. To make an empty one so removes nothing.
            self._importer.clear(found.path, counted=bool(children))
        self._importer.make_directory(found.path, time_ms)
        return True


class PlanImporter:
    """The importer of a dry run: writes nothing, and counts what would be written."""

    def __init__(self, report: TransferReport, say: Callable[[str], None]) -> None:
        self._report = report
        self._say = say

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

    def put_file(self, file: SourceFile, unless_hash: Hash | None = None) -> None:
        """Counts a file that would be stored, or is the same."""
        try:
            if unless_hash is not None and hash_source(file.location) == unless_hash:
                self._report.unchanged(1)
                return
        except SourceUnreadable as error:
            self._report.problem(file.location, str(error))
            return
        self._report.committed(None, CommitCounts(1, file.size))
        self._line("put", file.path)

    def put_link(self, path: Path, target: str, time_ms: int | None) -> None:
        """Counts a link."""
        self._report.committed(None, CommitCounts(links=1))
        self._line("link", path)

    def make_directory(self, path: Path, time_ms: int | None) -> None:
        """Counts an empty directory."""
        self._report.committed(None, CommitCounts(directories=1))
        self._line("mkdir", path)

    def remove(self, path: Path) -> None:
        """Counts a removal."""
        self._report.committed(None, CommitCounts(removed=1))
        self._line("remove", path)

    def clear(self, path: Path, *, counted: bool = True) -> None:
        """Counts a removal that makes way."""
        if counted:
            self.remove(path)

    def _line(self, verb: str, path: Path) -> None:
        self._say(f"{verb} {format_path(path)}")


def resolve_base(store: FileStore, version: str, path: Path) -> tuple[Path, FileInfo | None]:
    """Returns where a tree is loaded to: the path behind all links, and the directory there or None.

    Raises Conflict where a file stands there, or on the way.
    """
    for length in range(len(path), -1, -1):
        with contextlib.suppress(NotFound):
            info = store.stat(path[:length], version)
            if info.kind is not EntryKind.DIRECTORY:
                raise Conflict("A file stands where a directory is needed.", path=format_path(path[:length]))
            return (info.path, info) if length == len(path) else ((*info.path, *path[length:]), None)
    return path, None


def _hash_of(known: FileInfo) -> Hash | None:
    return parse_hash(known.hash)
