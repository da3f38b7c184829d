"""What the plugin says of itself in ``/system/health``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from svc.plugin import HealthCheck, HealthReport, HealthStatus
from svc_auth_magic_link.configuration import check_authorities

if TYPE_CHECKING:
    from svc.plugin import PluginContext
    from svc_auth_magic_link.configuration import MagicLinkSettings

__all__ = ["MagicLinkCheck"]


class MagicLinkCheck(HealthCheck):
    """Whether links can be sent, where a mail server is named.

    Whether sending works is in the log only: mail goes out for users who exist, so that a public answer which
    depends on it would tell who does.
    """

    name: ClassVar[str] = "magic-link"

    def check(self, context: PluginContext) -> HealthReport:
        """Looks at the settings alone, and at the file that they name."""
        settings: MagicLinkSettings = context.configuration
        problem = _problem_of(settings)
        return HealthReport() if problem is None else HealthReport(HealthStatus.DEGRADED, problem)


def _problem_of(settings: MagicLinkSettings) -> str | None:
    if settings.is_incomplete:
        return (
            "A mail server is set, but no link can be sent without smtp_from, and base_url or url_template."
        )
    if settings.can_mail and not settings.log_links:
        try:
            check_authorities(settings.smtp_ca)
        except ValueError:
            return "No link can be sent: the file of smtp_ca can't be read, or has no certificates."
    return None
