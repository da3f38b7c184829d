"""Blocking calls that suit both worlds: plain threads, and greenlets on gevent's event loop.

Under gevent's monkey patching a call that blocks for longer than about a millisecond (a sync, a wait
for another process's lock) runs in gevent's threadpool; in plain threads it is simply called.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

__all__ = [
    "begin_blocking",
    "pause",
    "run_at_once",
    "run_blocking",
    "run_shielded",
    "sleep",
    "under_gevent",
    "wait_for",
]

T = TypeVar("T")
_Outcome: TypeAlias = tuple[T | None, BaseException | None]

_OWN_THREADS = 16
_WAIT_SECONDS = 0.25
_own_pool: tuple[int, Any] | None = None


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

    hub = get_hub()
    if not hub.main_hub:
        return function(*args)  # A thread of the pool already: nobody else waits for it.
    outcome: _Outcome[T] = hub.threadpool.apply(_outcome_of, (function, *args))
    return _unwrap(outcome)


def begin_blocking(function: Callable[..., T], *args: Any) -> Callable[[], T]:
    """Begins ``function(*args)`` and returns what waits for its outcome, which raises what it raised.

    In plain threads it is done when this returns.
    """
    if under_gevent():
        from gevent import get_hub

        hub = get_hub()
        if hub.main_hub:
            begun = hub.threadpool.spawn(_outcome_of, function, *args)
            return lambda: _unwrap(begun.get())
    outcome = _outcome_of(function, *args)
    return lambda: _unwrap(outcome)


def run_at_once(function: Callable[[], T]) -> T:
    """As ``run_blocking``, but never behind what others run there: for whom the others may wait for."""
    global _own_pool
    if not under_gevent():
        return function()
    from gevent import get_hub
    from gevent.threadpool import ThreadPool

    hub = get_hub()
    if not hub.main_hub:
        return function()
    if _own_pool is None or _own_pool[0] != os.getpid():
        _own_pool = (os.getpid(), ThreadPool(_OWN_THREADS, hub=hub))
    outcome: _Outcome[T] = _own_pool[1].apply(_outcome_of, (function,))
    return _unwrap(outcome)


def run_shielded(function: Callable[[], None]) -> None:
    """Calls a function that runs to its end also when the greenlet that waits for it here is killed.

    What it raises is raised here.
    """
    if not under_gevent():
        function()
        return
    from gevent import spawn

    _unwrap(spawn(_outcome_of, function).get())


def wait_for(event: threading.Event) -> None:
    """Waits until an event is set, by whichever thread or greenlet."""
    if under_gevent():
        from gevent import get_hub

        if get_hub().main_hub:
            event.wait()  # A timer would cost as much as the rest of the wait.
            return
    # A thread of gevent's pool has nothing else that would keep it waiting.
    while not event.wait(_WAIT_SECONDS):
        pass


def _outcome_of(function: Callable[..., T], *args: Any) -> _Outcome[T]:
    """Returns a result, or an error as a value: what is raised in a thread of its own, gevent prints."""
    try:
        return function(*args), None
    except BaseException as error:  # noqa: BLE001
        return None, error


def _unwrap(outcome: _Outcome[T]) -> T:
    result, error = outcome
    if error is not None:
        raise error
    return cast("T", result)


def pause() -> None:
    """Lets other greenlets run, those too whose sockets have just become ready.

    ``gevent.sleep(0)`` is not enough: gevent runs up to 50 greenlets that yield so before it looks at a
    socket again. Does nothing in plain threads, which the interpreter switches itself.
    """
    if under_gevent():
        from gevent import get_hub

        hub = get_hub()
        hub.wait(hub.loop.timer(0))


def sleep(seconds: float) -> None:
    """Waits; other greenlets or threads run."""
    time.sleep(seconds)
