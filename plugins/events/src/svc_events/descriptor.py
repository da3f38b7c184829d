"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, CommandHome, PluginDescriptor, SystemPath

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="events",
    version="0.1.0",
    summary="What happens in the database, as events that plugins deliver",
    api=(1, 1),
    implementation="svc_events.plugin",
    adds={
        "jobs": ("svc_events.sinks.job:SinkJob",),
        "health_checks": ("svc_events.sinks.states:SinkHealth",),
        "metrics:gauge_sources": ("svc_events.sinks.gauges:SinkGauges",),
        "events:event_types": ("svc_events.entries:EntryEvents",),
    },
    command_group="Running it",
    families="svc_events.api",
    # How far this machine has delivered: a copy elsewhere begins with what happens there.
    system_paths=(SystemPath("events", BackupRule.SKIP),),
    commands=(
        CommandHome("events", "svc_events.commands.events:events", "Shows what happens in the database."),
    ),
)
