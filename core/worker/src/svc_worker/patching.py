"""gevent's patching of a worker, with one look at what is installed.

gevent asks before and after each module that it replaces which plugins of it are installed: some 25 times,
and each time the metadata of all distributions is read, which was a third of the start of a worker.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

__all__ = ["entry_points_read_once", "keep_closing", "read_entry_points"]

_GEVENTS = "gevent."
_log = logging.getLogger(__name__)


@contextmanager
def entry_points_read_once() -> Iterator[None]:
    """Answers gevent's questions for entry points from one reading, while nothing else runs here."""
    module: Any = metadata
    ask = module.entry_points
    found = read_entry_points()

    def entry_points(**wanted: Any) -> metadata.EntryPoints:
        if wanted.get("group", "").startswith(_GEVENTS):
            return found.select(**wanted)
        answer: metadata.EntryPoints = ask(**wanted)
        return answer

    module.entry_points = entry_points
    try:
        yield
    finally:
        module.entry_points = ask


def keep_closing() -> None:
    """Takes gevent's ``os.close`` back: it leaves all but regular files to the event loop of the thread.

    Native threads run none: there a directory, and the lock on it, stayed open for good. What greenlets
    read from or write to is closed as sockets are.
    """
    from gevent.monkey import get_original

    os.close = get_original("os", "close")


@functools.cache
def read_entry_points() -> metadata.EntryPoints:
    """Returns gevent's entry points. The master reads them, and the workers that it forks have the answer."""
    try:
        found: Any = metadata.entry_points()
    except Exception:  # noqa: BLE001 - metadata of others must not keep a worker from starting
        _log.exception("What is installed cannot be read; plugins of gevent are not asked.")
        return metadata.EntryPoints()
    groups = [group for group in found.groups if group.startswith(_GEVENTS)]
    return metadata.EntryPoints(point for group in groups for point in found.select(group=group))
