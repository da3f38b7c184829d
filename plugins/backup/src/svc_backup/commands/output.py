"""What the commands print: a report, and a progress bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from svc_cli import terminal_text

__all__ = ["Progress", "print_report", "progress_bar"]

Progress = Callable[[str, int, int], None]
"""Told (phase, bytes done, bytes in all)."""


def print_report(lines: list[tuple[str, Any]]) -> None:
    """Prints names and values in two columns."""
    width = max(len(name) for name, _ in lines) + 2
    for name, value in lines:
        click.echo(terminal_text(f"{name + ':':<{width}}{value}"))


@contextmanager
def progress_bar(*, wanted: bool = True) -> Iterator[Progress]:
    """Gives a function to call with (phase, done, total); on a terminal it draws a bar on standard error."""
    if not wanted or not sys.stderr.isatty():
        yield lambda _phase, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    tasks: dict[str, Any] = {}
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:

        def show(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase, total=total)
            bars.update(tasks[phase], completed=done, total=total)

        yield show
