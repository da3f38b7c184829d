"""The hooks that the plugin implements: each adds one thing to a registry."""

from __future__ import annotations

from svc.plugin import AuthMode, HealthCheck, NamedRegistry, hookimpl

__all__ = ["svc_register_auth_modes", "svc_register_health_checks"]


@hookimpl
def svc_register_auth_modes(auth_modes: NamedRegistry[AuthMode]) -> None:
    """Adds ``--auth oidc``."""
    from svc_auth_oidc.mode import OidcAuthMode

    auth_modes.add(OidcAuthMode())


@hookimpl
def svc_register_health_checks(health_checks: NamedRegistry[HealthCheck]) -> None:
    """Adds the check that says when the issuer gives no keys."""
    from svc_auth_oidc.health import IssuerCheck

    health_checks.add(IssuerCheck())
