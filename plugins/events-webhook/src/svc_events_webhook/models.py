"""What the operations on webhooks take and answer."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from svc.plugin import Confidential, Page

__all__ = [
    "Deliveries",
    "Delivery",
    "DeliveryQuery",
    "Format",
    "MadeWebhook",
    "NewSecret",
    "NewWebhook",
    "RemovedWebhook",
    "RetryBody",
    "RotateBody",
    "ShownWebhook",
    "WebhookChange",
    "WebhookList",
]

Format: TypeAlias = Literal["envelope", "cloudevents", "cloudevents-binary"]
"""The body of a request: the envelope of the event, or a CloudEvents 1.0 message."""

Time = Annotated[int, Meta(description="Unix milliseconds.")]
Names = Annotated[list[str], Meta(description="Types of events; none: all.")]
Prefix = Annotated[str | None, Meta(description="Only events with a path that begins so.")]


class NewWebhook(Confidential, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A webhook that is to be made."""

    url: str
    id: Annotated[str | None, Meta(description="Letters, digits, dots, hyphens; null: one is made.")] = None
    events: Names = []  # noqa: RUF012 - msgspec copies it
    path_prefix: Prefix = None
    secret: Annotated[str | None, Meta(description="`whsec_` and base64; null: one is made.")] = None
    enabled: bool = True
    format: Format = "envelope"
    user_id: Annotated[str | None, Meta(description="Whose rights count; null: the caller's.")] = None


class WebhookChange(Confidential, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What shall be different of a webhook; what is left out stays."""

    url: str | UnsetType = UNSET
    events: Names | UnsetType = UNSET
    path_prefix: Prefix | UnsetType = UNSET
    secret: str | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    format: Format | UnsetType = UNSET


class ShownWebhook(Struct, frozen=True, kw_only=True):
    """A webhook as it is shown, never with its secret.

    Attributes:
        user_id: whose rights count; None: root's.
        has_secret: whether requests are signed.
        old_secret_until: until when they are signed by the secret before too.
        place: the id of the event behind which it stands; None: the background process has not seen it yet.
        commits_behind: how many commits it has not looked at.
        failures: tries that failed since the last that did not.
        failing_since: the first of them.
        error: why the last one failed.
        retry_at: when it is tried again.
    """

    id: str
    url: str
    events: list[str]
    path_prefix: str | None
    enabled: bool
    format: Format
    user_id: str | None
    has_secret: bool
    old_secret_until: Time | None = None
    place: str | None = None
    commits_behind: int | None = None
    failures: int = 0
    failing_since: Time | None = None
    error: str | None = None
    retry_at: Time | None = None


class MadeWebhook(Confidential, frozen=True, kw_only=True):
    """A webhook that was made, and its secret, which no other answer ever holds."""

    webhook: ShownWebhook
    secret: str


class WebhookList(Struct, frozen=True):
    """Webhooks, in the order of the file."""

    webhooks: list[ShownWebhook]


class RemovedWebhook(Struct, frozen=True):
    """A webhook that is no more."""

    id: str
    deleted: bool


class RotateBody(Confidential, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new secret; the old one signs beside it for a while."""

    secret: Annotated[str | None, Meta(description="`whsec_` and base64; null: one is made.")] = None
    hours: Annotated[float, Meta(ge=0, le=720, description="For how long the old one still signs.")] = 24.0


class NewSecret(Confidential, frozen=True):
    """The new secret, which no other answer ever holds."""

    secret: str
    old_secret_until: Time | None


class RetryBody(Struct, frozen=True, forbid_unknown_fields=True):
    """From where on events are delivered."""

    since: Annotated[
        str | None, Meta(description="The id of an event behind which to go on; null: where it stands.")
    ] = None


class DeliveryQuery(Struct, frozen=True):
    """Which part of the tries is asked for."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    after: Annotated[str | None, Meta(description="`next_cursor` of the part before.")] = None


class Delivery(Struct, frozen=True, kw_only=True):
    """One try to deliver one event.

    Attributes:
        at: when it began.
        took_ms: how long it took.
        status: HTTP status of the answer; None: there was none.
        error: why it failed; None: it was taken.
        answer: the first kilobyte of the answer's body.
    """

    event_id: str
    event_type: str
    at: Time
    took_ms: int
    status: int | None
    error: str | None
    answer: str


class Deliveries(Page[Delivery], frozen=True, kw_only=True):
    """Tries, the newest first."""

    deliveries: list[Delivery]
