"""Gives memory back to the system when a worker has had many connections and has them no longer.

CPython takes small objects (up to 512 bytes) from pools of 16 KiB, which lie in arenas of 1 MiB. An arena
goes back to the system when all its objects have gone. After a storm of clients a few dozen objects hold
arenas that are empty otherwise: what was made for the first time in the storm and stays (``make_ahead``), and
what is replaced all the time, such as the timers of the event loop. Each of these takes the place of one
before it, so that they would never leave (``prefer_full_pools``).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
from collections import Counter
from collections.abc import Callable
from itertools import count, repeat
from typing import Any

from gevent.event import Event

from svc_worker.responses import learn_statuses

__all__ = ["make_ahead", "prefer_full_pools", "shrink", "trim"]

_POOL_SHIFT = 14
_POOL_BYTES = 1 << _POOL_SHIFT
_POOL_HEAD = 48
_CLASS_BYTES = 16
_LARGEST_BYTES = 512
_BYTES_OVERHEAD = sys.getsizeof(b"")

_MOST_BYTES = 1 << 21
"""At most so much is filled of one class of sizes."""

# ctypes makes classes for a library, which would lie among what is to be freed.
_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def make_ahead() -> None:
    """Makes what a worker makes once and keeps, so that it does not lie among its first many connections."""
    learn_statuses()
    # What is noted of gevent's own code when a wait ends by an exception.
    Event().wait(0.001)
    # What the first process needs that a worker starts. It is not worth an import at the start of the server,
    # and can wait where no descriptor is left.
    with contextlib.suppress(OSError, ImportError):
        from gevent.fileobject import FileObject

        reading, writing = os.pipe()
        os.close(writing)
        FileObject(reading, "rb").close()


def trim() -> None:
    """Returns unused memory to the system; takes some twenty milliseconds."""
    # The interpreter's cache of attributes holds names that C code made for each look-up. They lie all over
    # the heap and would keep most of it from being freed.
    sys._clear_type_cache()
    gc.collect()
    prefer_full_pools()
    if _malloc_trim is not None:
        _malloc_trim(0)


def shrink(*sets: set[Any]) -> None:
    """Lets sets that have been large take what their members need; by itself a set keeps its table."""
    for members in sets:
        kept = list(members)
        members.clear()
        members.update(kept)


def prefer_full_pools() -> None:
    """Lets new small objects go where the fewest gaps are, so that what is nearly empty becomes empty.

    The allocator takes from the pool that was the last to get a gap. So all gaps are filled, and the fullest
    pool is the last that gets its gaps back. Takes some 20 ms, and little new memory: at most three pools for
    each class of sizes. Does nothing of use with another allocator (``PYTHONMALLOC``).
    """
    fillers: list[object] = []
    for size in range(_CLASS_BYTES, _LARGEST_BYTES + 1, _CLASS_BYTES):
        if not _fill(size, fillers):
            break
    gaps = Counter(id(filler) >> _POOL_SHIFT for filler in fillers)
    fillers.sort(key=lambda filler: gaps[id(filler) >> _POOL_SHIFT])
    while fillers:
        fillers.pop()


def _fill(size: int, fillers: list[object]) -> bool:
    """Fills the gaps of one class of sizes; returns whether it came to their end.

    The allocator begins a new pool only when no other has room: a pool with our objects alone is one.
    """
    make = _maker(size)
    in_pool = (_POOL_BYTES - _POOL_HEAD) // size
    for _ in range(_MOST_BYTES // (2 * _POOL_BYTES)):
        # Numbers are small objects too: none are made in between.
        batch = [make() for _ in repeat(None, 2 * in_pool)]
        fillers += batch
        if in_pool in Counter(id(filler) >> _POOL_SHIFT for filler in batch).values():
            return True
    return False


def _maker(size: int) -> Callable[[], object]:
    """Returns what makes an object of the largest size in a class, which the collector need not look at."""
    if size == 16:
        return object
    if size == 32:
        return count(1 << 40).__next__  # A float would go to those that the interpreter keeps for the next.
    length = size - _BYTES_OVERHEAD
    return lambda: bytes(length)
