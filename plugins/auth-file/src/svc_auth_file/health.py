"""What the plugin says of itself in ``/system/health``: whether the file can be read as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from svc.plugin import HealthCheck, HealthReport, HealthStatus
from svc_auth_file.mode import source_of

if TYPE_CHECKING:
    from svc.plugin import PluginContext

__all__ = ["UsersFileCheck"]


class UsersFileCheck(HealthCheck):
    """Degraded while the file is broken and the last good one is used. What is wrong is for root's eyes."""

    name: ClassVar[str] = "users-file"

    def check(self, context: PluginContext) -> HealthReport:
        """Looks at the file, at most once a second."""
        source = source_of(context.database)
        if source is None:
            return HealthReport()
        source.current()
        if source.problem is None:
            return HealthReport()
        return HealthReport(
            HealthStatus.DEGRADED,
            "The file of users can't be used as it is now; the last good one counts.",
            {"problem": source.problem},
        )
