"""The hooks of the plugin: its auth mode, its routes, its commands and its background job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import AuthMode, NamedRegistry, PluginContext, RouteRegistry

__all__ = ["svc_register_auth_modes", "svc_register_routes", "svc_start"]


@hookimpl
def svc_register_auth_modes(auth_modes: NamedRegistry[AuthMode]) -> None:
    """Adds ``--auth self-contained``."""
    from svc_auth_self.mode import SelfContainedAuthMode

    auth_modes.add(SelfContainedAuthMode())


@hookimpl
def svc_register_routes(routes: RouteRegistry) -> None:
    """Adds the routes of tokens and keys."""
    from svc_auth_self.resources.tokens import FailureLimits, LogoutResource, RefreshResource, TokenResource

    failures = FailureLimits()
    routes.add("/auth/token", TokenResource(failures))
    routes.add("/auth/refresh", RefreshResource(failures))
    routes.add("/auth/logout", LogoutResource())


@hookimpl
def svc_start(context: PluginContext) -> None:
    """Notes the settings, for routes and modes of plugins that build on this one."""
    from svc_auth_self.settings import note_settings

    note_settings(context.database, context.configuration)
