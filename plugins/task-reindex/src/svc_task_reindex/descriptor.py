"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="task.reindex",
    version="0.1.0",
    summary="A task that indexes files again",
    api=(1, 1),
    adds={
        "tasks:task_types": ("svc_task_reindex.task:REINDEX",),
        "jobs": ("svc_task_reindex.following:ConfigurationsJob",),
    },
    needs=("query", "tasks"),
)
