"""The hooks of the plugin: its auth mode, its commands and its background jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_portal.api import PortalPage, SignIn

    from svc.plugin import (
        AuthMode,
        HealthCheck,
        JobRegistry,
        NamedRegistry,
        PluginContext,
    )

__all__ = [
    "svc_background",
    "svc_register_auth_modes",
    "svc_register_health_checks",
    "svc_register_portal_pages",
    "svc_register_sign_ins",
    "svc_start",
]


@hookimpl
def svc_register_auth_modes(auth_modes: NamedRegistry[AuthMode]) -> None:
    """Adds ``--auth self-contained``."""
    from svc_auth_self.mode import SelfContainedAuthMode

    auth_modes.add(SelfContainedAuthMode())


@hookimpl
def svc_register_health_checks(health_checks: NamedRegistry[HealthCheck]) -> None:
    """Adds the check of root's keys."""
    from svc_auth_self.health import RootKeyCheck

    health_checks.add(RootKeyCheck())


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds the pages of keys and of sign-ins."""
    from svc_auth_self.portal.keys import KeysPage
    from svc_auth_self.portal.sign_ins import SignInsPage

    portal_pages.add(KeysPage())
    portal_pages.add(SignInsPage())


@hookimpl
def svc_register_sign_ins(sign_ins: NamedRegistry[SignIn]) -> None:
    """Adds signing in by a key at the portal."""
    from svc_auth_self.portal.sign_in import KeySignIn

    sign_ins.add(KeySignIn())


@hookimpl
def svc_background(jobs: JobRegistry) -> None:
    """Adds the jobs of signing keys and of what has expired."""
    from svc_auth_self.jobs import PruneJob, SigningKeyJob

    jobs.add(SigningKeyJob())
    jobs.add(PruneJob())


@hookimpl
def svc_start(context: PluginContext) -> None:
    """Notes the settings, for routes and modes of plugins that build on this one."""
    from svc_auth_self.settings import note_settings

    note_settings(context.database, context.configuration)
