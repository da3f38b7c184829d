"""Blocking calls that suit both worlds: plain threads, and greenlets on gevent's event loop.

Under gevent's monkey patching a call that blocks for longer than about a millisecond (a sync, a wait
for another process's lock) runs in gevent's threadpool; in plain threads it is simply called.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["pause", "run_blocking", "sleep", "under_gevent"]

T = TypeVar("T")


def under_gevent() -> bool:
    """Whether this process runs on gevent: its threads are greenlets."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


def run_blocking(function: Callable[..., T], *args: Any) -> T:
    """Calls ``function(*args)``, letting other greenlets run meanwhile where there are any.

    What it raises is raised here.
    """
    if not under_gevent():
        return function(*args)
    from gevent import get_hub

    result: T = get_hub().threadpool.apply(function, args)
    return result


def pause() -> None:
    """Lets other greenlets run; does nothing in plain threads, which the interpreter switches itself."""
    if under_gevent():
        from gevent import sleep as yield_to_others

        yield_to_others(0)


def sleep(seconds: float) -> None:
    """Waits; other greenlets or threads run."""
    time.sleep(seconds)
