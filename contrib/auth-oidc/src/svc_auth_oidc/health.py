"""Whether the issuer's keys could be fetched when they were last needed."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from svc.plugin import Database, HealthCheck, HealthReport, HealthStatus, PluginContext
from svc_auth_oidc.issuer import IssuerKeys

__all__ = ["IssuerCheck", "watch"]

_watched: WeakKeyDictionary[Database, IssuerKeys] = WeakKeyDictionary()


def watch(database: Database, keys: IssuerKeys) -> None:
    """Names the keys that decide in this process who may use a database."""
    _watched[database] = keys


class IssuerCheck(HealthCheck):
    """Degraded from a failed fetch to the next one that succeeds; the keys at hand are used meanwhile."""

    name = "oidc-issuer"

    def check(self, context: PluginContext) -> HealthReport:
        """Looks at what the last fetch came to; does not ask the issuer."""
        keys = _watched.get(context.database)
        if keys is None or not keys.is_failing:
            return HealthReport()
        return HealthReport(HealthStatus.DEGRADED, "The keys of the identity provider could not be fetched.")
