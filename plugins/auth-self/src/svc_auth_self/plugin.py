"""What the plugin does when its use begins or ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import PluginContext

__all__ = ["svc_start"]


@hookimpl
def svc_start(context: PluginContext) -> None:
    """Notes the settings, for routes and modes of plugins that build on this one."""
    from svc_auth_self.settings import note_settings

    note_settings(context.database, context.configuration)
