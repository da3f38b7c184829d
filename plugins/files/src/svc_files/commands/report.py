"""What a load or a dump did: counts that grow while it goes on, and the report at its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from svc.errors import SvcError
from svc_files.client import CommitCounts
from svc_files.commands.output import ProgressLine, count_of, printable, size_text

__all__ = ["KEPT_PROBLEMS", "TransferReport"]

KEPT_PROBLEMS = 1_000
"""Problems that the JSON report lists; beyond it they are only counted."""

_REDRAW_SECONDS = 0.1


class TransferReport:
    """Counts what a transfer does, moves the progress bar, tells problems as they come; for one thread."""

    def __init__(self, progress: ProgressLine, *, quiet_problems: bool = False) -> None:
        self._progress = progress
        self._quiet = quiet_problems
        self._started = time.monotonic()
        self._drawn = 0.0
        self.files = 0
        self.bytes = 0
        self.unchanged_files = 0
        self.links = 0
        self.directories = 0
        self.removed_entries = 0
        self.version: str | None = None
        self.problem_count = 0
        self.problems: list[dict[str, str]] = []
        self.notes: list[dict[str, str]] = []
        self.interrupted = False
        self.failure: SvcError | None = None

    def committed(self, version: str | None, counts: CommitCounts) -> None:
        """A commit is durable: what it holds counts as done."""
        self.version = version or self.version
        self.links += counts.links
        self.directories += counts.directories
        self.removed_entries += counts.removed
        self.done(counts.files, counts.size)

    def done(self, files: int, size: int) -> None:
        """So many files of so many bytes are done."""
        self.files += files
        self.bytes += size
        self._draw()

    def unchanged(self, files: int) -> None:
        """So many files were there already."""
        self.unchanged_files += files
        self._draw()

    def problem(self, path: str, reason: str) -> None:
        """An item could not be transferred."""
        self.problem_count += 1
        shown = {"path": printable(path), "reason": reason}
        if len(self.problems) < KEPT_PROBLEMS:
            self.problems.append(shown)
        if not self._quiet:
            self._progress.say(f"svc: left out: {shown['path']}: {reason}")

    def note(self, path: str, reason: str, *, skipped: bool = True) -> None:
        """An item was left out, as it should be; or was taken, with something to be said of it."""
        shown = {"path": printable(path), "reason": reason}
        if len(self.notes) < KEPT_PROBLEMS:
            self.notes.append(shown)
        if not self._quiet:
            self._progress.say(f"svc: {'skipped' if skipped else 'note'}: {shown['path']}: {reason}")

    @property
    def has_done_something(self) -> bool:
        """Whether anything was transferred, found to be there, or removed."""
        return any((self.files, self.unchanged_files, self.links, self.directories, self.removed_entries))

    @property
    def seconds(self) -> float:
        """How long the transfer has taken."""
        return time.monotonic() - self._started

    def as_json(self, **more: Any) -> dict[str, Any]:
        """The report for a script; ``more`` are members of the command's own."""
        return {
            **more,
            "files": self.files,
            "bytes": self.bytes,
            "unchanged_files": self.unchanged_files,
            "links": self.links,
            "directories": self.directories,
            "removed": self.removed_entries,
            "version": self.version,
            "problem_count": self.problem_count,
            "problems": self.problems,
            "notes": self.notes,
            "interrupted": self.interrupted,
            "duration_ms": round(self.seconds * 1000),
        }

    def as_text(self, verb: str, echo: Callable[[str], None]) -> None:
        """Prints the report for a person."""
        seconds = max(self.seconds, 1e-3)
        parts = [f"{verb} {count_of(self.files, 'file')}, {size_text(self.bytes)}"]
        if self.unchanged_files:
            parts.append(f"{self.unchanged_files:,} unchanged")
        if self.links:
            parts.append(count_of(self.links, "link"))
        if self.directories:
            parts.append(count_of(self.directories, "empty directory"))
        if self.removed_entries:
            parts.append(f"{self.removed_entries:,} removed")
        echo(f"{'; '.join(parts)} in {seconds:.1f} s ({size_text(round(self.bytes / seconds))}/s)")
        if self.version is not None:
            echo(f"version {self.version}")

    def _draw(self) -> None:
        now = time.monotonic()
        if now - self._drawn >= _REDRAW_SECONDS:
            self._drawn = now
            rate = size_text(round(self.bytes / max(self.seconds, 1e-3)))
            self._progress.show(
                self.files + self.unchanged_files + self.links,
                f"{self.files + self.unchanged_files:,} files  {size_text(self.bytes)}  {rate}/s",
            )
