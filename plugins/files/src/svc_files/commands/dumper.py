"""Writes what a store holds below a directory of the store into one of this machine."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from msgspec import Struct, field

from svc.errors import CorruptRecord, NotFound
from svc.plugin import EntryKind, Path, format_path, parse_path
from svc_files.client import FileInfo, FileStore
from svc_files.commands.exclusion import NOTHING, Exclusion
from svc_files.commands.interruption import Interruption
from svc_files.commands.report import TransferReport
from svc_files.commands.target_directory import TargetDirectory, TargetRefused

__all__ = ["DumpOptions", "Dumper"]

_GROUP_FILES = 64
_GROUP_BYTES = 4 * 1024 * 1024


class DumpOptions(Struct, frozen=True):
    """How a tree is written, by ``jobs`` threads; ``compare``: the directory may hold some of it already."""

    jobs: int = 4
    keep_times: bool = False
    compare: bool = False
    excluded: Exclusion = NOTHING


class _Outcome(Struct):
    files: int = 0
    size: int = 0
    unchanged: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)


class Dumper:
    """Dumps one tree."""

    def __init__(
        self,
        store: FileStore,
        version: str,
        base: Path,
        target: TargetDirectory,
        options: DumpOptions,
        report: TransferReport,
        interruption: Interruption,
    ) -> None:
        self._store = store
        self._version = version
        self._base = base
        self._target = target
        self._options = options
        self._report = report
        self._interruption = interruption
        self._running: deque[Future[_Outcome]] = deque()
        self._directories: list[tuple[Path, int]] = []
        self._links: list[FileInfo] = []

    def run(self) -> None:
        """Writes directories and files, then links, then the directories' times.

        Raises Interrupted where the user asked for an end: whole files only are left behind.
        """
        pool = ThreadPoolExecutor(self._options.jobs, thread_name_prefix="svc-dump")
        try:
            waiting: list[Path] = [self._base]
            while waiting:
                waiting.extend(reversed(self._directory(pool, waiting.pop())))
            self._take(0)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        for link in self._links:
            self._interruption.check()
            self._link(link)
        if self._options.keep_times:
            for below, time_ms in reversed(self._directories):
                self._set_time(below, time_ms)

    def _directory(self, pool: ThreadPoolExecutor, path: Path) -> list[Path]:
        below = path[len(self._base) :]
        try:
            with self._target.directory(below) as parent:
                if self._options.compare:
                    self._target.remove_left_parts(parent)
        except TargetRefused as refusal:
            self._report.problem(format_path(path), str(refusal))
            return []
        directories: list[Path] = []
        group: list[FileInfo] = []
        size = 0
        for child in self._store.children(path, self._version):
            if self._options.excluded.fits(child.path[len(self._base) :]):
                continue
            if child.kind is EntryKind.DIRECTORY:
                directories.append(child.path)
                if child.is_complete:
                    self._directories.append((child.path[len(self._base) :], child.updated_ms))
            elif child.kind is EntryKind.SYMLINK:
                self._links.append(child)
            else:
                group.append(child)
                size += child.size
            if len(group) >= _GROUP_FILES or size >= _GROUP_BYTES:
                self._submit(pool, below, group)
                group, size = [], 0
        if group:
            self._submit(pool, below, group)
        return directories

    def _submit(self, pool: ThreadPoolExecutor, below: Path, group: Sequence[FileInfo]) -> None:
        self._interruption.check()
        self._running.append(pool.submit(self._write_group, below, group))
        self._take(self._options.jobs * 3)

    def _take(self, leave: int) -> None:
        while len(self._running) > leave:
            self._interruption.check()
            outcome = self._running.popleft().result()
            self._report.done(outcome.files, outcome.size)
            if outcome.unchanged:
                self._report.unchanged(outcome.unchanged)
            for path, reason in outcome.problems:
                self._report.problem(path, reason)

    def _write_group(self, below: Path, group: Sequence[FileInfo]) -> _Outcome:
        """Writes files of one directory; runs in a thread of the pool."""
        outcome = _Outcome()
        try:
            with self._target.directory(below) as parent:
                for info in group:
                    if self._interruption.requested:
                        break
                    self._write_file(parent, info, outcome)
        except TargetRefused as refusal:
            outcome.problems.extend((format_path(info.path), str(refusal)) for info in group)
        return outcome

    def _write_file(self, parent: int, info: FileInfo, outcome: _Outcome) -> None:
        time_ms = info.updated_ms if self._options.keep_times else None
        try:
            if self._options.compare and self._target.holds_file(parent, info.name, info.size, info.hash):
                outcome.unchanged += 1
                return
            pieces = self._store.read(info, self._version)
            outcome.size += self._target.write_file(parent, info.name, iter(pieces), info.hash, time_ms)
            outcome.files += 1
        except TargetRefused as refusal:
            outcome.problems.append((format_path(info.path), str(refusal)))
        except (CorruptRecord, NotFound) as error:
            # A damaged file is no reason to leave the sound ones behind.
            outcome.problems.append((format_path(info.path), error.message))

    def _link(self, link: FileInfo) -> None:
        target = parse_path(link.target or "/")
        if target[: len(self._base)] != self._base:
            self._report.problem(
                format_path(link.path), f"the link leads to {link.target}, outside of what is dumped"
            )
            return
        if self._options.excluded.holds(target[len(self._base) :]):
            self._report.problem(
                format_path(link.path), f"the link leads to {link.target}, which is excluded"
            )
            return
        below = link.path[len(self._base) : -1]
        time_ms = link.updated_ms if self._options.keep_times else None
        try:
            with self._target.directory(below) as parent:
                relative = _relative(below, target[len(self._base) :])
                if self._target.write_link(parent, link.name, relative, time_ms):
                    self._report.links += 1
        except TargetRefused as refusal:
            self._report.problem(format_path(link.path), str(refusal))

    def _set_time(self, below: Path, time_ms: int) -> None:
        try:
            self._target.set_time(below, time_ms)
        except TargetRefused as refusal:
            self._report.problem(format_path((*self._base, *below)), str(refusal))


def _relative(directory: Path, target: Path) -> str:
    common = 0
    while common < min(len(directory), len(target)) and directory[common] == target[common]:
        common += 1
    return "/".join((*[".."] * (len(directory) - common), *target[common:])) or "."
