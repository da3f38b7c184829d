"""What the plugin does when its use begins or ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import PluginContext

__all__ = ["svc_stop"]


@hookimpl
def svc_stop(context: PluginContext) -> None:
    """Sends what waits, as far as that is quick."""
    from svc_traces_otlp.observer import OBSERVER

    OBSERVER.stop(context)
