"""The health check: degraded with the damaged paths, until they are whole again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from svc.plugin import HealthCheck, HealthReport, HealthStatus
from svc_maintenance.verification import is_whole_again
from svc_task_verify.record import Found, read_found

if TYPE_CHECKING:
    from svc.plugin import Database, PluginContext

__all__ = ["DamageCheck"]

_LOOK_AGAIN_SECONDS = 30.0


class DamageCheck(HealthCheck):
    """Tells what a verification found damaged; looks now and then whether it still is."""

    name = "verify"

    def __init__(self) -> None:
        # By database: its system root, when it was looked at, and what is damaged.
        self._seen: WeakKeyDictionary[Database, tuple[bytes, float, Found | None]] = WeakKeyDictionary()

    def check(self, context: PluginContext) -> HealthReport:
        """See ``HealthCheck``."""
        database = context.database
        root = database.head().system_root
        seen = self._seen.get(database)
        now = time.monotonic()
        if seen is None or (seen[0] != root and seen[2] is None) or now - seen[1] >= _LOOK_AGAIN_SECONDS:
            found = read_found(database)
            if found is not None and _is_whole(database, found):
                found = None
            seen = self._seen[database] = (root, now, found)
        found = seen[2]
        if found is None:
            return HealthReport()
        things = "1 thing is" if found.count == 1 else f"{found.count} things are"
        return HealthReport(
            HealthStatus.DEGRADED,
            f"The last verification found that {things} damaged in the database. "
            "Look with 'svc verify', and repair with 'svc verify --repair'.",
            {"paths": found.paths, "commits": found.commits, "found_at": found.at},
        )


def _is_whole(database: Database, found: Found) -> bool:
    """Looks at what is kept of what was damaged: where that is whole and there is more, the next run tells.

    It ends at the first that still is, so that all of it is read only once there is nothing left to tell.
    """
    if not (found.hashes or found.regions or found.commits):
        return False  # nothing that could be looked at alone
    return is_whole_again(
        database, [bytes.fromhex(one) for one in found.hashes], found.regions, found.commits
    )
