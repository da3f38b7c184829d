"""The hooks of the plugin: its auth mode with the end of it, its health check and its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import AuthMode, HealthCheck, NamedRegistry, PluginContext

__all__ = ["svc_register_auth_modes", "svc_register_health_checks", "svc_stop"]


@hookimpl
def svc_register_auth_modes(auth_modes: NamedRegistry[AuthMode]) -> None:
    """Adds ``--auth file://PATH``."""
    from svc_auth_file.mode import FileAuthMode

    auth_modes.add(FileAuthMode())


@hookimpl
def svc_register_health_checks(health_checks: NamedRegistry[HealthCheck]) -> None:
    """Adds the check of the file."""
    from svc_auth_file.health import UsersFileCheck

    health_checks.add(UsersFileCheck())


@hookimpl
def svc_stop(context: PluginContext) -> None:
    """Ends the thread that looks at the file."""
    from svc_auth_file.mode import stop_source

    stop_source(context.database)
