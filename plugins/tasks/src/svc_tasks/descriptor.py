"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, PluginDescriptor, SystemPath
from svc_tasks.configuration import TasksConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="tasks",
    version="0.1.0",
    summary="Tasks in the background, and schedules that start them",
    api=(1, 1),
    configuration=TasksConfiguration,
    implementation="svc_tasks.plugin",
    operations=("svc_tasks.operations",),
    extends=("events:event_types", "metrics:gauge_sources"),
    families="svc_tasks.api",
    # Work of this database on this machine: in a copy elsewhere it would be done twice.
    system_paths=(SystemPath("tasks", BackupRule.SKIP),),
)
