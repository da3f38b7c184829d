"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor
from svc_events_sse.configuration import SseConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="events.sse",
    version="0.1.0",
    summary="Events as Server-Sent Events",
    api=(1, 1),
    configuration=SseConfiguration,
    adds={
        "events:pulses": ("svc_events_sse.heartbeat:Heartbeat",),
        "portal:portal_pages": ("svc_events_sse.portal.pages:EventsPage",),
        "portal:state_cards": ("svc_events_sse.portal.pages:EventsCard",),
    },
    operations=("svc_events.operations",),
    needs=("events",),
)
