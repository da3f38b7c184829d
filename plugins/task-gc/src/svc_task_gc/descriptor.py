"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import CommandHome, PluginDescriptor
from svc_task_gc.configuration import GcConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="task.gc",
    version="0.1.0",
    summary="Garbage collection: as a task, by a route and at the shell",
    api=(1, 1),
    configuration=GcConfiguration,
    adds={
        "tasks:task_types": ("svc_task_gc.task:GcTask",),
        "events:event_types": ("svc_task_gc.event_types:GcEvents",),
        "portal:portal_pages": ("svc_task_gc.portal.collection:CollectionPage",),
        "portal:state_cards": ("svc_task_gc.portal.collection:CollectionCard",),
    },
    command_group="Running it",
    operations=("svc_task_gc.operations",),
    needs=("versions",),
    commands=(
        CommandHome(
            "gc",
            "svc_task_gc.commands:gc",
            "Collects garbage: gives back the space of what no version needs any more.",
        ),
        CommandHome(
            "compact",
            "svc_task_gc.commands:compact",
            "Copies a database without what its garbage takes, and puts the copy in its place.",
        ),
    ),
)
