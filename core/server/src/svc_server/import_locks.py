"""Python's locks of imports, for greenlets and native threads that first import one module at once.

``importlib`` makes two locks a module by ``_thread.allocate_lock``, which is gevent's in a worker: of a
greenlet and a thread of a pool that wait for one import, one may wait for ever (``svc.native_locks``).
"""

from __future__ import annotations

import _thread
import sys
import time
from types import SimpleNamespace, TracebackType
from typing import Any

from svc.native_locks import native_lock

__all__ = ["use_native_import_locks"]

_POLL_SECONDS = 0.001


def use_native_import_locks() -> None:
    """Has later imports of this process wait on native locks, where gevent has patched it.

    Imports that wait for each other are found as before: gevent's identities of greenlets stay.
    """
    monkey: Any = sys.modules.get("gevent.monkey")
    if monkey is None or not monkey.is_module_patched("_thread"):
        return
    bootstrap: Any = sys.modules["_frozen_importlib"]
    bootstrap._thread = SimpleNamespace(**{**vars(_thread), "allocate_lock": _ImportLock})


class _ImportLock:
    """A native lock; asked for again and again, so that the greenlet that imports goes on meanwhile."""

    def __init__(self) -> None:
        self._native = native_lock()

    def acquire(self, blocking: bool = True) -> bool:
        while not self._native.acquire(False):
            if not blocking:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def release(self) -> None:
        self._native.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._native.release()
