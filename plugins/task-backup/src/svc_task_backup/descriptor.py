"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="task.backup",
    version="0.1.0",
    summary="A task that writes backups and keeps as many as it is told",
    api=(1, 1),
    adds={
        "tasks:task_types": ("svc_task_backup.task:BACKUP",),
    },
    needs=("backup", "tasks"),
)
