"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, PluginDescriptor, SystemPath
from svc_task_verify.configuration import VerifyConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="task.verify",
    version="0.1.0",
    summary="A task that reads everything again and says what is damaged",
    api=(1, 1),
    configuration=VerifyConfiguration,
    implementation="svc_task_verify.plugin",
    operations=("svc_task_verify.operations",),
    extends=("tasks:task_types", "portal:portal_pages", "portal:state_cards"),
    # What is damaged in this file says nothing of a copy.
    system_paths=(SystemPath("task-verify", BackupRule.SKIP),),
)
