"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="task.verify",
    version="0.1.0",
    summary="A task that reads everything again and says what is damaged",
    api=(1, 1),
    implementation="svc_task_verify.plugin",
    extends=("tasks:task_types",),
)
