"""The hooks of the plugin: health check, job, forms at the portal, and the end of what waits to be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_portal.api import SignIn

    from svc.plugin import HealthCheck, JobRegistry, NamedRegistry, PluginContext

__all__ = ["svc_background", "svc_register_health_checks", "svc_register_sign_ins", "svc_stop"]


@hookimpl
def svc_register_health_checks(health_checks: NamedRegistry[HealthCheck]) -> None:
    """Adds the check of the settings."""
    from svc_auth_magic_link.health import MagicLinkCheck

    health_checks.add(MagicLinkCheck())


@hookimpl
def svc_background(jobs: JobRegistry) -> None:
    """Adds the job that removes codes which have expired."""
    from svc_auth_magic_link.codes import PruningJob

    jobs.add(PruningJob())


@hookimpl
def svc_register_sign_ins(sign_ins: NamedRegistry[SignIn]) -> None:
    """Adds the form that asks for a link, and the one that a link leads to."""
    from svc_auth_magic_link.portal.sign_in import AskForLink, UseLink

    sign_ins.add(AskForLink())
    sign_ins.add(UseLink())


@hookimpl
def svc_stop(context: PluginContext) -> None:
    """Ends the threads that send."""
    from svc_auth_magic_link.delivery import stop_delivery

    stop_delivery(context.database)
