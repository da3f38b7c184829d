"""Whether somebody can sign in as root in the weeks to come."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from svc.plugin import ROOT_USER_ID, HealthCheck, HealthReport, HealthStatus
from svc_auth_self.keys import keys_of
from svc_auth_self.records import now_ms

if TYPE_CHECKING:
    from svc.plugin import PluginContext

__all__ = ["RootKeyCheck"]

_WARN_MS = 14 * 86_400_000
_MOST_KEYS = 1_000


class RootKeyCheck(HealthCheck):
    """Degraded where the last key of root ends within two weeks, or has ended."""

    name = "auth-self.root-key"

    def check(self, context: PluginContext) -> HealthReport:
        """Reads the records of root's keys, which are few."""
        last = None
        for key in islice(keys_of(context.database.system(), ROOT_USER_ID), _MOST_KEYS):
            if key.is_root_key:
                if key.expires_at - now_ms() > _WARN_MS:
                    return HealthReport()
                last = max(last or 0, key.expires_at)
        if last is None:
            return HealthReport()
        return HealthReport(
            HealthStatus.DEGRADED,
            "No key of root is good for more than two weeks from now: make one with 'svc key create', or "
            "with 'svc reset-root-key' when the last has ended.",
            {"expires_at": last},
        )
