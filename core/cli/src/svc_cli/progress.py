"""A progress bar on standard error, for what a person waits for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Gives a function to call with (done, total); on a terminal, the first call shows the bar."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress, TaskID

    progress = Progress(console=Console(stderr=True), transient=True)
    task: TaskID | None = None

    def report(done: int, total: int) -> None:
        nonlocal task
        if task is None:
            progress.start()
            task = progress.add_task(title, total=total)
        progress.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        if task is not None:
            progress.stop()
