"""What the plugin does when its use begins or ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import PluginContext

__all__ = ["svc_start", "svc_stop"]


@hookimpl
def svc_start(context: PluginContext) -> None:
    """Lets delivery plugins read the events of the database."""
    from svc_events.feeds import start_feed

    start_feed(context)


@hookimpl
def svc_stop(context: PluginContext) -> None:
    """Ends what reads them."""
    from svc_events.feeds import stop_feed

    stop_feed(context)
