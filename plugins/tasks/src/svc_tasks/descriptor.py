"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, CommandHome, PluginDescriptor, SyncRule, SystemPath
from svc_tasks.configuration import TasksConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="tasks",
    version="0.1.0",
    summary="Tasks in the background, and schedules that start them",
    api=(1, 1),
    configuration=TasksConfiguration,
    implementation="svc_tasks.plugin",
    command_group="Running it",
    operations=("svc_tasks.operations",),
    extends=("events:event_types", "metrics:gauge_sources", "portal:portal_pages", "portal:state_cards"),
    families="svc_tasks.api",
    # Work of this database on this machine: in a copy elsewhere it would be done twice.
    system_paths=(
        SystemPath("tasks", BackupRule.SKIP),
        SystemPath("tasks/last-runs", BackupRule.SKIP, sync=SyncRule.LAST_WRITER),
    ),
    commands=(
        CommandHome("task", "svc_tasks.commands.task:task", "Lists, runs, shows, watches and cancels tasks."),
        CommandHome("cron", "svc_tasks.commands.cron:cron", "Lists, adds and changes schedules of tasks."),
    ),
)
