"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, CommandHome, PluginDescriptor, SyncRule, SystemPath
from svc_events_webhook.configuration import WebhookConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="events.webhook",
    version="0.1.0",
    summary="Events as signed requests to URLs",
    api=(1, 1),
    configuration=WebhookConfiguration,
    adds={
        "events:event_sinks": ("svc_events_webhook.sink:WebhookSink",),
        "content_checks": ("svc_events_webhook.store:WebhookCheck",),
        "health_checks": ("svc_events_webhook.sink:WebhookHealth",),
    },
    command_group="Running it",
    operations=("svc_events_webhook.operations",),
    needs=("events", "users"),
    system_paths=(SystemPath("webhooks", BackupRule.SECRET, sync=SyncRule.LAST_WRITER),),
    commands=(
        CommandHome(
            "webhook", "svc_events_webhook.commands.webhook:webhook", "Lists, adds and tests webhooks."
        ),
    ),
)
