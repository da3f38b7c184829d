"""What the plugin says about itself. svc reads it at every start, so it imports no more of the plugin."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="contrib.hello",
    version="0.1.0",
    summary="Counts files below a directory",
    api=(1, 1),
    adds={
        "tasks:task_types": ("svc_hello.task:CountTask",),
    },
)
