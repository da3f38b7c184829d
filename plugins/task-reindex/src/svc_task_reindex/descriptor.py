"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="task.reindex",
    version="0.1.0",
    summary="A task that indexes files again",
    api=(1, 1),
    implementation="svc_task_reindex.plugin",
    extends=("tasks:task_types",),
    needs=("query", "tasks"),
)
