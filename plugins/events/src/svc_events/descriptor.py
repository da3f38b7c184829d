"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="events",
    version="0.1.0",
    summary="What happens in the database, as events that plugins deliver",
    api=(1, 1),
    implementation="svc_events.plugin",
    families="svc_events.api",
)
