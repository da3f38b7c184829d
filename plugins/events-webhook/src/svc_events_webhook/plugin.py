"""The hooks of the plugin: its sink, its command, and the check of its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import EventSink

    from svc.plugin import ContentCheck, HealthCheck, NamedRegistry

__all__ = [
    "svc_register_content_checks",
    "svc_register_event_sinks",
    "svc_register_health_checks",
]


@hookimpl
def svc_register_event_sinks(event_sinks: NamedRegistry[EventSink]) -> None:
    """Adds the sink."""
    from svc_events_webhook.sink import WebhookSink

    event_sinks.add(WebhookSink())


@hookimpl
def svc_register_content_checks(content_checks: NamedRegistry[ContentCheck]) -> None:
    """Adds the check of ``/.config/webhooks.json``."""
    from svc_events_webhook.store import WebhookCheck

    content_checks.add(WebhookCheck())


@hookimpl
def svc_register_health_checks(health_checks: NamedRegistry[HealthCheck]) -> None:
    """Adds the check of webhooks that can't be used."""
    from svc_events_webhook.sink import WebhookHealth

    health_checks.add(WebhookHealth())
