"""What the commands print: lines for people, JSON for scripts, a progress bar on a terminal."""

from __future__ import annotations

import errno
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click
import msgspec

from svc.errors import Conflict, Forbidden, InsufficientStorage, NotFound, SvcError
from svc_cli import counted as count_of
from svc_cli import terminal_text

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["ProgressLine", "count_of", "json_line", "printable", "size_text", "unwritable"]

_UNITS = ("B", "K", "M", "G", "T", "P", "E")


def size_text(size: int) -> str:
    """A number of bytes as people read it, in powers of 1024: ``812B``, ``1.4M``, ``23G``."""
    value = float(size)
    for unit in _UNITS:
        if value < 999.5 or unit == _UNITS[-1]:
            break
        value /= 1024
    if unit == "B":
        return f"{size}B"
    return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"


def printable(text: str) -> str:
    """A name of this machine as a terminal may show it: no control characters, no lone surrogates."""
    shown = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return terminal_text(shown)


def unwritable(where: str, error: OSError) -> SvcError:
    """Returns the error that says why a place of this machine cannot be written to."""
    reason = (error.strerror or str(error)).lower()
    message = f"{printable(where) or 'An empty name'} cannot be written to: {reason}."
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return InsufficientStorage(message)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Forbidden(message)
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotFound(message)
    return Conflict(message)


def json_line(value: Any) -> None:
    """Prints one JSON document on a line of standard output."""
    click.echo(msgspec.json.encode(value))


class ProgressLine:
    """A progress bar on standard error, when that is a terminal; else nothing at all."""

    def __init__(self, label: str, *, wanted: bool = True) -> None:
        self._progress: Progress | None = None
        if wanted and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                Progress,
                SpinnerColumn,
                TaskProgressColumn,
                TextColumn,
                TimeElapsedColumn,
            )

            self._progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TaskProgressColumn(show_speed=False),
                TextColumn("{task.fields[amount]}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._progress.add_task(printable(label), total=None, amount="")

    @property
    def is_shown(self) -> bool:
        """Whether there is a bar."""
        return self._progress is not None

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def expect(self, total: int) -> None:
        """Says how many steps there will be."""
        if self._progress is not None:
            self._progress.update(self._task, total=total)

    def show(self, completed: int, amount: str) -> None:
        """Moves the bar to so many steps, with a text behind it."""
        if self._progress is not None:
            self._progress.update(self._task, completed=completed, amount=amount)

    def say(self, line: str) -> None:
        """Prints a line on standard error, above the bar where there is one."""
        line = terminal_text(line)
        if self._progress is not None:
            self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(line, err=True)
