"""Keeps the garbage collector from going through what bulk work makes: much of it lives, none is garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from svc.native_locks import native_lock

__all__ = ["collector_paused"]

_mutex = native_lock()
_pauses = 0
_was_enabled = False


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses the collector in this process while the block runs; the last of several blocks lets it go on.

    For work whose memory is bounded: cyclic garbage of other threads stays until then too.
    """
    global _pauses, _was_enabled
    with _mutex:
        _pauses += 1
        if _pauses == 1:
            _was_enabled = gc.isenabled()
            gc.disable()
    try:
        yield
    finally:
        with _mutex:
            _pauses -= 1
            if _pauses == 0 and _was_enabled:
                gc.enable()
