"""The hook of the plugin: its routes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import RouteRegistry

__all__ = ["svc_register_routes"]


@hookimpl
def svc_register_routes(routes: RouteRegistry) -> None:
    """Adds the streams."""
    from svc_events_sse.resources import EventsResource, OwnEventsResource

    everything = EventsResource()
    routes.add("/system/events", everything)
    routes.add("/events/stream", everything)
    routes.add("/events/me", OwnEventsResource())
