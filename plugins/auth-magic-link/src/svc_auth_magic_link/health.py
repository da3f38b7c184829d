"""What the plugin says of itself in ``/system/health``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from svc.plugin import HealthCheck, HealthReport, HealthStatus

if TYPE_CHECKING:
    from svc.plugin import PluginContext

__all__ = ["MagicLinkCheck"]


class MagicLinkCheck(HealthCheck):
    """Whether links can be sent, where a mail server is named.

    Whether sending works is in the log only: mail goes out for users who exist, so that a public answer which
    depends on it would tell who does.
    """

    name: ClassVar[str] = "magic-link"

    def check(self, context: PluginContext) -> HealthReport:
        """Looks at the settings alone."""
        if not context.configuration.is_incomplete:
            return HealthReport()
        return HealthReport(
            HealthStatus.DEGRADED,
            "A mail server is set, but no link can be sent without smtp_from, and base_url or url_template.",
        )
