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
    adds={
        "tasks:task_types": ("svc_task_verify.task:VerifyTask",),
        "health_checks": ("svc_task_verify.health:DamageCheck",),
        "portal:portal_pages": ("svc_task_verify.portal.verification:VerificationPage",),
        "portal:state_cards": ("svc_task_verify.portal.verification:VerificationCard",),
    },
    operations=("svc_task_verify.operations",),
    # What is damaged in this file says nothing of a copy.
    system_paths=(SystemPath("task-verify", BackupRule.SKIP),),
)
