"""What the plugin does when its use begins or ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import PluginContext

__all__ = ["svc_stop"]


@hookimpl
def svc_stop(context: PluginContext) -> None:
    """Ends the threads that send."""
    from svc_auth_magic_link.delivery import stop_delivery

    stop_delivery(context.database)
