"""Rate limits that all workers share and that outlive a restart.

The library ``limits`` decides; its storage here is LMDB beside the database. It is written without syncs, so
its directory is named after the boot of the machine: a power cut begins the limits anew.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from blake3 import blake3

from svc.plugin import Database

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.strategies import MovingWindowRateLimiter

__all__ = ["RateLimiter", "limiter_of"]

_limiters: WeakKeyDictionary[Database, dict[str, RateLimiter]] = WeakKeyDictionary()


def limiter_of(database: Database, name: str) -> RateLimiter:
    """Returns the limiter of this name of a database; each name is counted by itself."""
    limiters = _limiters.setdefault(database, {})
    limiter = limiters.get(name)
    return limiter or limiters.setdefault(name, RateLimiter(database.state_directory, name))


class RateLimiter:
    """Counts events by key, such as failed logins by address. Safe in every thread; costs microseconds."""

    def __init__(self, directory: str | os.PathLike[str], name: str) -> None:
        self._name = name
        self._directory = Path(directory) / "auth.self"
        self._process = 0
        self._made: MovingWindowRateLimiter | None = None

    def hit(self, key: str, limit: int, window_s: int) -> float | None:
        """Counts an event unless there were too many already.

        The key is stored as a hash; the window moves with the time.

        Returns:
            None when it was counted; else the seconds after which the next one would be.
        """
        limiter, item, name = self._limiter(), _item(limit, window_s), self._key(key)
        if limiter.hit(item, name):
            return None
        return _wait(limiter, item, name)

    def wait(self, key: str, limit: int, window_s: int) -> float | None:
        """As ``hit``, without counting anything."""
        limiter, item, name = self._limiter(), _item(limit, window_s), self._key(key)
        if limiter.test(item, name):
            return None
        return _wait(limiter, item, name)

    def forget(self, key: str, limit: int, window_s: int) -> None:
        """Forgets the events of a key."""
        self._limiter().clear(_item(limit, window_s), self._key(key))

    def _key(self, key: str) -> str:
        # No address and no mail address is kept.
        return blake3(f"{self._name}\0{key}".encode("utf-8", "surrogatepass")).hexdigest(16)

    def _limiter(self) -> MovingWindowRateLimiter:
        made = self._made
        if made is None or self._process != os.getpid():
            # Only who signs in is counted: until then the library is not there.
            from limits.strategies import MovingWindowRateLimiter

            from svc_auth_self.limit_storage import LimitStorage

            made = self._made = MovingWindowRateLimiter(LimitStorage(self._directory))
            self._process = os.getpid()
        return made


def _item(limit: int, window_s: int) -> RateLimitItem:
    from limits import RateLimitItemPerSecond

    return RateLimitItemPerSecond(limit, window_s)


def _wait(limiter: MovingWindowRateLimiter, item: RateLimitItem, key: str) -> float:
    return max(0.001, limiter.get_window_stats(item, key).reset_time - time.time())
