"""What the plugin does when its use begins or ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import PluginContext

__all__ = ["svc_stop"]


@hookimpl
def svc_stop(context: PluginContext) -> None:
    """Ends the thread that looks at the file."""
    from svc_auth_file.mode import stop_source

    stop_source(context.database)
