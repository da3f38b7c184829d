"""Whether the index gets on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from svc.plugin import HealthCheck, HealthReport, HealthStatus, PluginContext
from svc_query.configuration import QueryConfiguration
from svc_query.indexing import INDEX_VIEW
from svc_query.indexing.counting import count_untaken, count_waiting, has_held_jobs

if TYPE_CHECKING:
    from svc.plugin import Database, ViewStorage

__all__ = ["IndexHealth"]

BEHIND_SECONDS = 60.0


class IndexHealth(HealthCheck):
    """Degraded while the view of the index cannot take in what was committed, or not all of it."""

    name = "query.index"

    def __init__(self) -> None:
        # By database: since when files wait to be read, by the monotonic clock.
        self._waiting_since: WeakKeyDictionary[Database, float] = WeakKeyDictionary()

    def check(self, context: PluginContext) -> HealthReport:
        """Looks at the view; does not wait for it."""
        reader = context.database.view(INDEX_VIEW)
        failure = reader.failure()
        if failure is None:
            # Where nothing was applied yet, reading would begin it.
            if not reader.applied:
                return HealthReport()
            untaken = reader.read(count_untaken, minimum=0)
            if untaken:
                return HealthReport(
                    HealthStatus.DEGRADED,
                    "Index types failed for some files, which queries test one by one: 'svc index status' "
                    "names them, and the log says why. They are taken again after a restart or a rebuild.",
                    {"view": INDEX_VIEW, "untaken": untaken},
                )
            behind = self._parsers_behind(context, reader.read(_waiting_files, minimum=0))
            if behind is not None:
                return behind
            if not reader.read(has_held_jobs, minimum=0):
                return HealthReport()
            settings = context.configuration or QueryConfiguration()
            return HealthReport(
                HealthStatus.DEGRADED,
                "The index of queries holds as many files as it may, and others are not indexed: raise its "
                "setting maximum_documents, or delete files.",
                {"view": INDEX_VIEW, "maximum_documents": settings.maximum_documents},
            )
        return HealthReport(
            HealthStatus.DEGRADED,
            "The index of queries does not get on; the log says why.",
            {"view": INDEX_VIEW, "applied": failure.applied},
        )

    def _parsers_behind(self, context: PluginContext, waiting: int) -> HealthReport | None:
        """Says that parsers are behind, where files have waited for them without end for a minute."""
        now = time.monotonic()
        if not waiting:
            self._waiting_since.pop(context.database, None)
            return None
        if now - self._waiting_since.setdefault(context.database, now) < BEHIND_SECONDS:
            return None
        return HealthReport(
            HealthStatus.DEGRADED,
            "The parsers are behind: changed files wait to be read, and queries of their contents wait for "
            "them. 'svc index status' names files that take too long.",
            {"view": INDEX_VIEW, "files_waiting": waiting},
        )


def _waiting_files(storage: ViewStorage) -> int:
    return count_waiting(storage, ())
