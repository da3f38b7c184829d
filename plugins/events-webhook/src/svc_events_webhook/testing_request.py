"""A request that a person asks for, to see whether a receiver works."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace
from svc_events.api import Event, FeedEvent, Place

from svc_events_webhook.configuration import WebhookConfiguration
from svc_events_webhook.models import Delivery
from svc_events_webhook.sending import Sender
from svc_events_webhook.sink import deliver_event, destination_of
from svc_events_webhook.store import secrets_of

if TYPE_CHECKING:
    from svc.plugin import Call
    from svc_events_webhook.store import Webhook

__all__ = ["send_test"]


def send_test(call: Call, webhook: Webhook) -> Delivery:
    """Sends an event of the type ``test``; blocks no longer than an answer may take."""
    database = call.database
    sequence = database.head().sequence
    event = Event(
        event_id=f"{Place(sequence)}-test",
        event_type="test",
        timestamp=time.time_ns() // 1_000_000,
        payload={"webhook": webhook.id},
    )
    destination = destination_of(webhook, secrets_of(webhook, database.system()))
    sender = Sender(webhook.url, call.configuration or WebhookConfiguration())
    found = FeedEvent(event, "root", ())
    try:
        source = f"urn:svc:{database.database_id.hex()}"
        answer, delivery = deliver_event(sender, destination, found, source)
    finally:
        sender.close()
    return replace(delivery, answer=answer.body.decode("utf-8", "replace"))
