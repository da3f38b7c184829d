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
    implementation="svc_events_sse.plugin",
    operations=("svc_events.operations",),
    needs=("events",),
    extends=("events:pulses", "portal:portal_pages", "portal:state_cards"),
)
