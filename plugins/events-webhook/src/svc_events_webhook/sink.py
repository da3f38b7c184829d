"""The sink: a destination for each webhook that is enabled, and a request for each event."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path as FilePath
from typing import Any

import msgspec
from svc_events.api import DeliveryFailed, Destination, EventSink, FeedEvent, Onlooker, node_id_of

from svc.plugin import (
    Database,
    Hash,
    HealthCheck,
    HealthReport,
    HealthStatus,
    Identity,
    PluginContext,
    Version,
)
from svc_events_webhook.configuration import WebhookConfiguration
from svc_events_webhook.deliveries import DeliveryLog
from svc_events_webhook.messages import make_message
from svc_events_webhook.models import Delivery, Format
from svc_events_webhook.sending import Answer, Sender
from svc_events_webhook.signing import parse_secret, signature_fields
from svc_events_webhook.store import (
    SECRETS,
    WEBHOOKS,
    SecretRecord,
    Webhook,
    check_usable,
    secrets_of,
)
from svc_users.api import RightsCache, find_user, groups_of

__all__ = ["SINK", "WebhookDestination", "WebhookHealth", "WebhookSink", "deliver_event", "destination_of"]

SINK = "webhooks"
_GONE = 410


class WebhookDestination(Destination, frozen=True, kw_only=True):
    """A webhook, with what signs its requests now."""

    url: str
    format: Format
    user_id: str | None
    keys: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"WebhookDestination({self.id!r})"


def destination_of(webhook: Webhook, record: SecretRecord | None) -> WebhookDestination:
    """Returns where a webhook delivers to, and how; ``record`` has its secrets."""
    texts = [] if record is None else [record.secret, *filter(None, [record.old_secret])]
    return WebhookDestination(
        id=webhook.id,
        names=frozenset(webhook.events) or None,
        path_prefix=webhook.path_prefix,
        url=webhook.url,
        format=webhook.format,
        user_id=webhook.user_id,
        keys=tuple(parse_secret(text) for text in texts),
    )


def deliver_event(
    sender: Sender, destination: WebhookDestination, found: FeedEvent, source: str
) -> tuple[Answer, Delivery]:
    """Sends one event, and returns what became of it."""
    began = time.time_ns()
    message = make_message(found, destination.format, source)
    event = found.event
    fields = signature_fields(destination.keys, event.event_id, began // 1_000_000_000, message.body)
    answer = sender.send(message.body, {"User-Agent": "svc", **message.fields, **fields})
    delivery = Delivery(
        event_id=event.event_id,
        event_type=event.event_type,
        at=began // 1_000_000,
        took_ms=(time.time_ns() - began) // 1_000_000,
        status=answer.status,
        error=answer.error,
        answer="",
    )
    return answer, delivery


def usable_webhooks(
    version: Version, system: Version, settings: WebhookConfiguration
) -> tuple[list[tuple[Webhook, SecretRecord]], list[str]]:
    """Returns the enabled webhooks that can be delivered to, with their secrets, and why the others can't."""
    faults: list[str] = []
    usable = []
    for webhook in WEBHOOKS.stored(version, lambda one: check_usable(one, settings), faults.append):
        record = secrets_of(webhook, system)
        if webhook.enabled and record is None:
            faults.append(
                f"webhook {webhook.id} has no secret, and gets nothing: svc webhook rotate makes one"
            )
        elif webhook.enabled and record is not None:
            usable.append((webhook, record))
    return usable, faults


class WebhookHealth(HealthCheck):
    """Degraded while a webhook is stored that can't be delivered to."""

    name = "events.webhook"

    def __init__(self) -> None:
        self._seen: tuple[object, HealthReport] = (None, HealthReport())

    def check(self, context: PluginContext) -> HealthReport:
        """Reads the file when it or a secret has changed."""
        version, system = context.database.at(), context.database.system()
        entries = version.get(WEBHOOKS.path), system.get(SECRETS)
        settings = context.configuration or WebhookConfiguration()
        key = (context.database, settings, *(None if entry is None else entry.hash for entry in entries))
        if self._seen[0] != key:
            _, faults = usable_webhooks(version, system, settings)
            report = HealthReport()
            if faults:
                words = "A webhook can't be delivered to."
                report = HealthReport(HealthStatus.DEGRADED, words, {"webhooks": faults[:100]})
            self._seen = (key, report)
        return self._seen[1]


class _Work:
    """What the sink holds for one database with one set of settings."""

    def __init__(self, database: Database, settings: WebhookConfiguration) -> None:
        self.lock = threading.Lock()
        self.database = database
        self.settings = settings
        self.log = DeliveryLog(database.state_directory, settings)
        self.rights = RightsCache(database)
        self.source = f"urn:svc:{database.database_id.hex()}"
        self.senders: dict[str, tuple[str, Sender]] = {}
        self.seen: tuple[Hash | None, Hash | None] | None = None
        self.until_ms = 0
        self.stored: set[str] = set()
        self.destinations: list[WebhookDestination] = []

    def sender(self, destination: WebhookDestination) -> Sender:
        """The connection of a webhook, which one thread uses at a time."""
        url, sender = self.senders.get(destination.id, ("", None))
        if sender is None or url != destination.url:
            if sender is not None:
                sender.close()
            sender = Sender(destination.url, self.settings)
            self.senders[destination.id] = destination.url, sender
        return sender

    def keep(self, used: set[str], stored: set[str]) -> None:
        """Ends the connections of webhooks that are not used, and forgets the tries of others."""
        for webhook_id in self.senders.keys() - used:
            self.senders.pop(webhook_id)[1].close()
        for webhook_id in self.stored - stored:
            self.log.forget(webhook_id)
        self.stored = stored


class WebhookSink(EventSink):
    """Delivers to webhooks. One event is one request, so that the place of a webhook is exact."""

    name = SINK
    maximum_batch = 1

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._work: dict[FilePath, _Work] = {}

    def destinations(self, context: PluginContext) -> Iterable[WebhookDestination]:
        """The webhooks that are enabled; reads the file when it, a secret or the time of one has changed.

        None, where another node of the cluster is to deliver: every event comes on every node.
        """
        work, database = self._of(context), context.database
        if work.settings.node_id not in (0, node_id_of(database) or work.settings.node_id):
            return []
        version, system = database.at(), database.system()
        entries = version.get(WEBHOOKS.path), system.get(SECRETS)
        file, secrets = (None if entry is None else entry.hash for entry in entries)
        with work.lock:
            now = time.time_ns() // 1_000_000
            if work.seen == (file, secrets) and not 0 < work.until_ms <= now:
                return work.destinations
            usable, faults = usable_webhooks(version, system, work.settings)
            ends = [record.old_until_ms for _, record in usable if record.old_secret is not None]
            work.destinations = [destination_of(webhook, record) for webhook, record in usable]
            work.seen, work.until_ms = (file, secrets), min(ends, default=0)
            work.keep({one.id for one in work.destinations}, {one.id for one in WEBHOOKS.stored(version)})
        for fault in faults:
            context.logger.warning("webhook: %s", fault)
        return work.destinations

    def deliver(self, destination: Destination, events: Sequence[FeedEvent], context: PluginContext) -> None:
        """Sends requests, one after another; see ``EventSink``."""
        assert isinstance(destination, WebhookDestination)
        work = self._of(context)
        for number, found in enumerate(events):
            answer, delivery = deliver_event(work.sender(destination), destination, found, work.source)
            work.log.add(destination.id, delivery, answer.body)
            if answer.error is not None:
                if answer.status == _GONE:
                    self._disable(destination, context)
                raise DeliveryFailed(answer.error, delivered=number, retry_after=answer.retry_after)

    def onlooker(self, destination: Destination, context: PluginContext) -> Onlooker | None:
        """Its user; None while there is none of this id who is active, or where it is another by now."""
        assert isinstance(destination, WebhookDestination)
        if destination not in self.destinations(context):
            return None
        if destination.user_id is None:
            return Onlooker(None)
        return onlooker_of(destination.user_id, context.database, self._of(context).rights)

    def _of(self, context: PluginContext) -> _Work:
        with self._lock:
            settings = context.configuration or WebhookConfiguration()
            place = context.database.state_directory
            work = self._work.get(place)
            if work is None or work.settings != settings or work.database is not context.database:
                if work is not None:
                    work.log.close()
                work = self._work[place] = _Work(context.database, settings)
            return work

    @staticmethod
    def _disable(destination: WebhookDestination, context: PluginContext) -> None:
        """The receiver is gone for good, as it says: nothing is sent to it any more."""

        def disabled(webhook: Webhook, _changes: Any) -> Webhook:
            # It may have another URL by now, which nobody has asked yet.
            return msgspec.structs.replace(
                webhook, enabled=webhook.url != destination.url and webhook.enabled
            )

        context.logger.warning("webhook disabled: %s", destination.id)
        WEBHOOKS.replace(context.database, destination.id, disabled, verb="disable", actor=None)


def onlooker_of(user_id: str, database: Database, rights: RightsCache) -> Onlooker | None:
    """Returns a user as one who looks on, with the rights of now; None where there is none who is active."""
    system = database.system()
    user = find_user(system, user_id)
    if user is None or not user.is_active:
        return None
    groups = groups_of(system, user)
    return Onlooker.of_identity(
        Identity(user_id, user.username, groups=groups, rights=rights.of(groups, system))
    )
