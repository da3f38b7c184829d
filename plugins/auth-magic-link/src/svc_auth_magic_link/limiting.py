"""How often links may be asked for: one count for each address, by all workers, which outlives a restart."""

from __future__ import annotations

import weakref

from svc.plugin import Database
from svc_auth_self.api import RateLimiter

__all__ = ["limiter_of"]

_limiters: weakref.WeakKeyDictionary[Database, RateLimiter] = weakref.WeakKeyDictionary()


def limiter_of(database: Database) -> RateLimiter:
    """Returns the limiter of a database in this process."""
    limiter = _limiters.get(database)
    return limiter or _limiters.setdefault(database, RateLimiter(database.state_directory, "magic-link"))
