"""Writers of the library that nobody uses just now.

Whoever keeps an index up to date opens a writer for each flush. The library merges segments in threads of
its own behind a flush, and gives that up when its writer goes; so a writer that was closed stays here, for
the next flush of this process to go on with. It takes little memory: buffers go with each commit.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path as FilePath
from typing import NamedTuple

import tantivy

from svc.plugin import native_lock

__all__ = ["IdleWriter", "keep", "take"]

_MOST = 16


class IdleWriter(NamedTuple):
    """A writer that was closed.

    Attributes:
        state: at which its working copy is.
        work: the working copy.
        writer: of the library.
    """

    state: bytes
    work: FilePath
    writer: tantivy.IndexWriter


_idle: OrderedDict[tuple[int, str], IdleWriter] = OrderedDict()
_lock = native_lock()


def keep(directory: FilePath, idle: IdleWriter) -> None:
    """Keeps a writer of an index; the one that was kept longest goes when there are many."""
    gone: list[IdleWriter] = []
    with _lock:
        key = _key(directory)
        if key in _idle:
            gone.append(_idle.pop(key))
        _idle[key] = idle
        while len(_idle) > _MOST:
            gone.append(_idle.popitem(last=False)[1])
    gone.clear()


def take(directory: FilePath, state: bytes | None) -> IdleWriter | None:
    """Returns the writer of an index if it is at a state; one that is at another goes."""
    with _lock:
        idle = _idle.pop(_key(directory), None)
    if idle is None or idle.state != state or not idle.work.exists():
        return None
    return idle


def _key(directory: FilePath) -> tuple[int, str]:
    """A process that was forked has none of the threads of these writers."""
    return os.getpid(), str(directory)
