"""The webhooks of a database: ``/.config/webhooks.json``, and their secrets in the system tree.

A secret may stand in the file, where whoever may read the file sees it. Those that the server makes, and
those that come by an operation, are kept at ``webhooks/<id>`` of the system tree, and count before it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from svc.errors import InvalidInput
from svc.plugin import (
    Condition,
    Confidential,
    ConfigurationList,
    ContentCheck,
    Path,
    PluginContext,
    Transaction,
    Version,
    at_field,
    read_record,
)
from svc_events_webhook.addresses import parse_target
from svc_events_webhook.configuration import WebhookConfiguration
from svc_events_webhook.models import Format
from svc_events_webhook.signing import parse_secret

__all__ = [
    "SECRETS",
    "WEBHOOKS",
    "SecretRecord",
    "Webhook",
    "WebhookCheck",
    "check_usable",
    "check_webhook",
    "known_events",
    "put_secret",
    "secret_file",
    "secrets_of",
]

SECRETS: Path = ("webhooks",)
_LONGEST_PREFIX = 4_096
_MOST_NAMES = 100


class Webhook(Confidential, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A webhook as the file has it.

    Attributes:
        id: unique in the file.
        url: where events go to.
        events: types of events; empty: all.
        path_prefix: only events with a path that begins so.
        secret: what requests are signed by; None: what the system tree holds.
        enabled: whether anything is delivered.
        format: what is sent of an event.
        user_id: whose rights count; None: root's.
    """

    id: str
    url: str
    events: list[str] = []  # noqa: RUF012 - msgspec copies it
    path_prefix: str | None = None
    secret: str | None = None
    enabled: bool = True
    format: Format = "envelope"
    user_id: str | None = None


class SecretRecord(Confidential, frozen=True, kw_only=True, omit_defaults=True):
    """The secrets of a webhook: the one in use, and the one before, until when it signs too."""

    secret: str
    old_secret: str | None = None
    old_until_ms: int = 0


WEBHOOKS = ConfigurationList("webhooks.json", "webhook", Webhook)


def check_usable(webhook: Webhook, settings: WebhookConfiguration) -> None:
    """Refuses a webhook that can't be delivered to now: InvalidInput."""
    parse_target(webhook.url, settings)
    if webhook.secret is not None:
        parse_secret(webhook.secret)


def check_webhook(webhook: Webhook, settings: WebhookConfiguration, known: Sequence[str] | None) -> None:
    """Refuses a webhook that makes no sense.

    Args:
        webhook: the webhook.
        settings: where webhooks may go to.
        known: the types of events that there are; None where that is not known.

    Raises:
        InvalidInput: ``field`` says what.
    """
    check_usable(webhook, settings)
    if len(webhook.events) > _MOST_NAMES:
        raise InvalidInput(f"A webhook names at most {_MOST_NAMES} types of events.", field="events")
    unknown = sorted(set(webhook.events).difference(known or webhook.events))
    if unknown:
        raise InvalidInput(
            f"There are no events {unknown[0][:64]!r}.", field="events", known=sorted(known or ())
        )
    if webhook.path_prefix is not None and (
        not webhook.path_prefix.startswith("/") or len(webhook.path_prefix) > _LONGEST_PREFIX
    ):
        raise InvalidInput("A path prefix begins with a slash.", field="path_prefix")


def _was_there(webhook: Webhook, present: Sequence[Webhook]) -> bool:
    """Whether it is what was there, or a disabled one or one without its secret of that."""
    alike = (msgspec.structs.replace(one, enabled=False) for one in present)
    kept = [*present, *alike]
    return webhook in kept or webhook in [msgspec.structs.replace(one, secret=None) for one in kept]


def secret_file(webhook_id: str) -> Path:
    """The record of a webhook's secrets, in the system tree."""
    return (*SECRETS, webhook_id)


def put_secret(
    changes: Transaction, webhook_id: str, record: SecretRecord, condition: Condition | None = None
) -> None:
    """Stores the secrets of a webhook; ``condition`` on what stands there."""
    changes.put_system(secret_file(webhook_id), msgspec.json.encode(record), condition=condition)


def secrets_of(webhook: Webhook, system: Version) -> SecretRecord | None:
    """Returns the secrets of a webhook as they are now; the old one is left out when its time is over."""
    record = read_record(system, system.get(secret_file(webhook.id)), SecretRecord)
    if record is None:
        return None if webhook.secret is None else SecretRecord(secret=webhook.secret)
    if record.old_secret is not None and record.old_until_ms <= time.time_ns() // 1_000_000:
        return SecretRecord(secret=record.secret)
    return record


def known_events(database: Any) -> Sequence[str] | None:
    """Returns the types of events that there are; None where this process does not read events."""
    from svc_events.api import feed_of

    from svc.errors import ServiceUnavailable

    try:
        return sorted(feed_of(database).names())
    except ServiceUnavailable:
        return None


class WebhookCheck(ContentCheck):
    """The check of ``/.config/webhooks.json`` when one is stored: a bad file is refused."""

    name = "events.webhook"
    suffixes = (WEBHOOKS.path,)
    maximum_size = WEBHOOKS.maximum_bytes

    def check(self, path: Path, content: bytes, context: PluginContext) -> None:
        """Checks a file; one of this name elsewhere is anybody's own."""
        if path != WEBHOOKS.path:
            return
        settings = context.configuration or WebhookConfiguration()
        known = known_events(context.database)
        # What was there stays, though the settings of now would not let it in: else nobody could remove it.
        present = WEBHOOKS.stored(context.database.at())
        webhooks = WEBHOOKS.parse(
            content,
            lambda one: None if _was_there(one, present) else check_webhook(one, settings, known),
        )
        if len(webhooks) > max(settings.maximum_webhooks, len(present)):
            with at_field("webhooks"):
                raise InvalidInput(
                    f"A database has at most {settings.maximum_webhooks} webhooks.",
                    limit=settings.maximum_webhooks,
                )
