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
    command_group="Running it",
    extends=("metrics:gauge_sources",),
    families="svc_events.api",
    # How far this machine has delivered: a copy elsewhere begins with what happens there.
    system_paths=(SystemPath("events", BackupRule.SKIP),),
    commands=(
        CommandHome("events", "svc_events.commands.events:events", "Shows what happens in the database."),
    ),
)
