"""Whether the index gets on."""

from __future__ import annotations

from svc.plugin import HealthCheck, HealthReport, HealthStatus, PluginContext
from svc_query.indexing import INDEX_VIEW

__all__ = ["IndexHealth"]


class IndexHealth(HealthCheck):
    """Degraded while the view of the index cannot take in what was committed."""

    name = "query.index"

    def check(self, context: PluginContext) -> HealthReport:
        """Looks at the view; does not wait for it."""
        failure = context.database.view(INDEX_VIEW).failure()
        if failure is None:
            return HealthReport()
        return HealthReport(
            HealthStatus.DEGRADED,
            "The index of queries does not get on; the log says why.",
            {"view": INDEX_VIEW, "applied": failure.applied},
        )
