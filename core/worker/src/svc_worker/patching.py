"""gevent's patching of a worker, with one look at what is installed.

gevent asks before and after each module that it replaces which plugins of it are installed: some 25 times,
and each time the metadata of all distributions is read, which was a third of the start of a worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

__all__ = ["entry_points_read_once"]


@contextmanager
def entry_points_read_once() -> Iterator[None]:
    """Answers all questions for entry points from one reading; while nothing else runs in this process."""
    module: Any = metadata
    ask = module.entry_points
    found: metadata.EntryPoints = ask()

    def entry_points(**wanted: Any) -> metadata.EntryPoints:
        return found.select(**wanted)

    module.entry_points = entry_points
    try:
        yield
    finally:
        module.entry_points = ask
