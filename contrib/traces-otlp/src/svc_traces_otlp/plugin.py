"""The hooks of the plugin: its observer of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import NamedRegistry, PluginContext, RequestObserver

__all__ = ["svc_register_request_observers", "svc_stop"]


@hookimpl
def svc_register_request_observers(request_observers: NamedRegistry[RequestObserver]) -> None:
    """Adds the observer."""
    from svc_traces_otlp.observer import OBSERVER

    request_observers.add(OBSERVER)


@hookimpl
def svc_stop(context: PluginContext) -> None:
    """Sends what waits, as far as that is quick."""
    from svc_traces_otlp.observer import OBSERVER

    OBSERVER.stop(context)
