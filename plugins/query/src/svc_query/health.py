"""Whether the index gets on."""

from __future__ import annotations

from svc.plugin import HealthCheck, HealthReport, HealthStatus, PluginContext
from svc_query.configuration import QueryConfiguration
from svc_query.indexing import INDEX_VIEW
from svc_query.indexing.counting import has_held_jobs

__all__ = ["IndexHealth"]


class IndexHealth(HealthCheck):
    """Degraded while the view of the index cannot take in what was committed, or has no room for it."""

    name = "query.index"

    def check(self, context: PluginContext) -> HealthReport:
        """Looks at the view; does not wait for it."""
        reader = context.database.view(INDEX_VIEW)
        failure = reader.failure()
        if failure is None:
            # Where nothing was applied yet, reading would begin it.
            if not reader.applied or not reader.read(has_held_jobs, minimum=0):
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
