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
    adds={
        "jobs": (
            "svc_tasks.running.job:TaskRunner",
            "svc_tasks.schedules.job:SchedulerJob",
        ),
        "content_checks": ("svc_tasks.schedules.checking:CronCheck",),
        "health_checks": ("svc_tasks.health:TaskHealth",),
        "metrics:gauge_sources": ("svc_tasks.gauges:TaskGauges",),
        "events:event_types": ("svc_tasks.event_types:TaskEvents",),
        "portal:portal_pages": (
            "svc_tasks.portal.tasks:TasksPage",
            "svc_tasks.portal.tasks:TaskPage",
            "svc_tasks.portal.tasks:NewTaskPage",
            "svc_tasks.portal.schedules:SchedulesPage",
        ),
        "portal:state_cards": ("svc_tasks.portal.card:TasksCard",),
    },
    command_group="Running it",
    operations=("svc_tasks.operations",),
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
