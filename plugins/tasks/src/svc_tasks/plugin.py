"""What the plugin does when its use begins or ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import PluginContext

__all__ = ["svc_enable"]


@hookimpl
def svc_enable(context: PluginContext) -> None:
    """Refuses a time zone that there is none of."""
    from svc_tasks.schedules.times import time_zone

    if context.configuration is not None:
        time_zone(context.configuration.timezone)
