"""The operations on webhooks: root's on all, and a user's on the user's own where the settings allow it."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import asdict, replace

from svc.errors import AlreadyExists, Conflict, Forbidden, InvalidInput, NotFound
from svc.plugin import Weight, operation, requires_account
from svc_events_webhook.configuration import WebhookConfiguration
from svc_events_webhook.models import (
    Deliveries,
    Delivery,
    DeliveryQuery,
    MadeWebhook,
    NewSecret,
    NewWebhook,
    RemovedWebhook,
    RetryBody,
    RotateBody,
    ShownWebhook,
    WebhookChange,
    WebhookList,
)

if TYPE_CHECKING:
    from svc.plugin import Call, Transaction
    from svc_events_webhook.store import SecretRecord, Webhook

__all__ = [
    "add_webhook",
    "change_webhook",
    "list_deliveries",
    "list_webhooks",
    "remove_webhook",
    "retry_webhook",
    "rotate_secret",
    "show_webhook",
    "test_webhook",
]

_MS_PER_HOUR = 3_600_000


@operation("GET", "/system/webhooks", requires_account, weight=Weight.SMALL)
def list_webhooks(call: Call) -> WebhookList:
    """Lists webhooks, in the order of the file: root all, a user the user's own."""
    from svc_events.api import destination_states

    from svc_events_webhook.sink import SINK

    states = destination_states(call.database, SINK)
    return WebhookList([_shown(call, one, states.get(one.id)) for one in _visible(call)])


@operation(
    "POST", "/system/webhooks", requires_account, status=201, errors=(AlreadyExists,), weight=Weight.SMALL
)
def add_webhook(call: Call, body: NewWebhook) -> MadeWebhook:
    """Adds a webhook, which gets what happens from then on. Its secret is in no other answer."""
    from svc_events_webhook.signing import make_secret, parse_secret
    from svc_events_webhook.store import WEBHOOKS, SecretRecord, Webhook, put_secret

    settings = _settings(call)
    user_id = _owner(call, body.user_id)
    secret = make_secret() if body.secret is None else body.secret
    parse_secret(secret)
    made = Webhook(
        id=f"webhook-{secrets.token_hex(8)}" if body.id is None else body.id,
        url=body.url,
        events=body.events,
        path_prefix=body.path_prefix,
        enabled=body.enabled,
        format=body.format,
        user_id=user_id,
    )
    _check(call, made)

    def also(changes: Transaction) -> None:
        _count(call, settings, user_id)
        put_secret(changes, made.id, SecretRecord(secret=secret))
        if made.enabled:
            _begin(call, changes, made.id)

    WEBHOOKS.add(call.database, made, actor=call.actor, also=also)
    return MadeWebhook(webhook=_shown(call, made, None), secret=secret)


@operation("GET", "/system/webhooks/{webhook}", requires_account, weight=Weight.SMALL)
def show_webhook(call: Call, webhook: str) -> ShownWebhook:
    """Shows a webhook, and how its deliveries go."""
    return _shown_now(call, _find(call, webhook))


@operation("PATCH", "/system/webhooks/{webhook}", requires_account, weight=Weight.SMALL, repeatable=True)
def change_webhook(call: Call, webhook: str, body: WebhookChange) -> ShownWebhook:
    """Changes what the body names of a webhook."""
    from svc_events.api import end_destination

    from svc_events_webhook.signing import parse_secret
    from svc_events_webhook.sink import SINK
    from svc_events_webhook.store import WEBHOOKS, SecretRecord, put_secret

    _find(call, webhook)
    members = {name: value for name, value in asdict(body).items() if value is not UNSET}
    secret = members.pop("secret", None)
    if secret is not None:
        parse_secret(secret)

    def change(old: Webhook, changes: Transaction) -> Webhook:
        new = replace(old, **members)
        if secret is not None:
            put_secret(changes, webhook, SecretRecord(secret=secret))
            new = replace(new, secret=None)
        if members.keys() - {"enabled"} or new.enabled:
            _check(call, new)
        if new.enabled and not old.enabled:
            _begin(call, changes, webhook)
        elif old.enabled and not new.enabled:
            end_destination(changes, call.database, SINK, webhook)
        return new

    return _shown_now(call, WEBHOOKS.replace(call.database, webhook, change, actor=call.actor))


@operation("DELETE", "/system/webhooks/{webhook}", requires_account, weight=Weight.SMALL)
def remove_webhook(call: Call, webhook: str) -> RemovedWebhook:
    """Removes a webhook, its secret and what is known of its deliveries."""
    from svc_events.api import end_destination

    from svc_events_webhook.deliveries import DeliveryLog
    from svc_events_webhook.sink import SINK
    from svc_events_webhook.store import WEBHOOKS, secret_file

    _find(call, webhook)

    def remove(_old: Webhook, changes: Transaction) -> None:
        if call.database.system().get(secret_file(webhook)) is not None:
            changes.delete_system(secret_file(webhook))
        end_destination(changes, call.database, SINK, webhook)

    WEBHOOKS.replace(call.database, webhook, remove, verb="remove", actor=call.actor)
    DeliveryLog(call.database.state_directory, _settings(call)).forget(webhook)
    return RemovedWebhook(webhook, deleted=True)


@operation("POST", "/system/webhooks/{webhook}/rotate", requires_account, weight=Weight.SMALL)
def rotate_secret(call: Call, webhook: str, body: RotateBody = RotateBody()) -> NewSecret:
    """Gives a webhook a new secret; requests are signed by the old one too for a while."""
    from svc.plugin import same_content
    from svc_events_webhook.signing import make_secret, parse_secret
    from svc_events_webhook.store import WEBHOOKS, SecretRecord, put_secret, secret_file, secrets_of

    _find(call, webhook)
    secret = make_secret() if body.secret is None else body.secret
    parse_secret(secret)
    until = time.time_ns() // 1_000_000 + int(body.hours * _MS_PER_HOUR)
    kept: list[SecretRecord | None] = []

    def change(old: Webhook, changes: Transaction) -> Webhook:
        system = call.database.system()
        kept[:] = [_whole(secrets_of(old, system))]
        present = kept[0]
        record = SecretRecord(secret=secret)
        if present is not None and body.hours > 0:
            record = SecretRecord(secret=secret, old_secret=present.secret, old_until_ms=until)
        put_secret(changes, webhook, record, same_content(system.get(secret_file(webhook))))
        return replace(old, secret=None)

    WEBHOOKS.replace(call.database, webhook, change, verb="rotate the secret of", actor=call.actor)
    return NewSecret(secret, until if kept[0] is not None and body.hours > 0 else None)


@operation("POST", "/system/webhooks/{webhook}/test", requires_account, weight=Weight.DEAR)
def test_webhook(call: Call, webhook: str) -> Delivery:
    """Sends an event of the type ``test`` at once, and tells what the receiver answered."""
    from svc_events_webhook.testing_request import send_test

    return send_test(call, _find(call, webhook))


@operation(
    "POST", "/system/webhooks/{webhook}/retry", requires_account, errors=(Conflict,), weight=Weight.SMALL
)
def retry_webhook(call: Call, webhook: str, body: RetryBody = RetryBody()) -> ShownWebhook:
    """Ends the pause after failures; or goes on behind another event, before or after where it stands."""
    from svc_events.api import deliver_again, parse_place

    from svc_events_webhook.sink import SINK

    found = _find(call, webhook)
    if not found.enabled:
        raise Conflict("The webhook is disabled: nothing is delivered.", id=webhook)
    since = None if body.since is None else parse_place(body.since)
    if since is not None and since.sequence > call.database.head().sequence:
        raise InvalidInput("No event has this id yet.", field="since")
    deliver_again(call.database, SINK, webhook, since, actor=call.actor)
    return _shown_now(call, found)


@operation("GET", "/system/webhooks/{webhook}/deliveries", requires_account, weight=Weight.DEAR)
def list_deliveries(call: Call, webhook: str, query: DeliveryQuery = DeliveryQuery()) -> Deliveries:
    """Lists the tries of the last days on this machine, the newest first."""
    from svc.plugin import run_blocking
    from svc_events_webhook.deliveries import DeliveryLog

    _find(call, webhook)
    log = DeliveryLog(call.database.state_directory, _settings(call))
    return run_blocking(log.page, webhook, query.limit, query.after)


def _begin(call: Call, changes: Transaction, webhook_id: str) -> None:
    """Lets a webhook begin behind the commit of the transaction, which has this number at least."""
    from svc_events.api import Place, begin_destination

    from svc_events_webhook.sink import SINK

    begin_destination(changes, SINK, webhook_id, Place(call.database.head().sequence + 1))


def _whole(record: SecretRecord | None) -> SecretRecord | None:
    """The secrets, if they are some: a file that nothing has checked may hold anything."""
    from svc_events_webhook.signing import parse_secret

    try:
        if record is not None:
            parse_secret(record.secret)
    except InvalidInput:
        return None
    return record


def _settings(call: Call) -> WebhookConfiguration:
    settings: WebhookConfiguration = call.configuration or WebhookConfiguration()
    return settings


def _visible(call: Call) -> list[Webhook]:
    """The webhooks that the caller may see; Forbidden where users have none."""
    from svc_events_webhook.store import WEBHOOKS

    webhooks = WEBHOOKS.stored(call.database.at())
    if call.identity.is_unrestricted_root:
        return webhooks
    if not _settings(call).allow_users or call.identity.rules:
        raise Forbidden("Webhooks are root's here.")
    return [one for one in webhooks if one.user_id == call.identity.user_id]


def _find(call: Call, webhook_id: str) -> Webhook:
    from svc_events_webhook.store import WEBHOOKS

    return WEBHOOKS.find(_visible(call), webhook_id)


def _owner(call: Call, wanted: str | None) -> str | None:
    """Whose rights a new webhook has: those of the caller, or of the user whom root names."""
    if not call.identity.is_unrestricted_root:
        _visible(call)
        if wanted not in (None, call.identity.user_id):
            raise Forbidden("A user makes webhooks of the user's own alone.")
        return call.identity.user_id
    if wanted is None:
        return None
    user = call.find_user(wanted)
    if user is None:
        raise NotFound("There is no such user.", user=wanted[:200])
    return user.user_id


def _count(call: Call, settings: WebhookConfiguration, user_id: str | None) -> None:
    """Refuses one more webhook than there may be."""
    from svc_events_webhook.store import WEBHOOKS

    webhooks = WEBHOOKS.stored(call.database.at())
    own = sum(one.user_id == user_id for one in webhooks)
    if len(webhooks) >= settings.maximum_webhooks:
        raise Conflict(f"A database has at most {settings.maximum_webhooks} webhooks.")
    if not call.identity.is_unrestricted_root and own >= settings.maximum_per_user:
        raise Conflict(f"A user has at most {settings.maximum_per_user} webhooks.")


def _check(call: Call, webhook: Webhook) -> None:
    from svc_events_webhook.store import check_webhook, known_events

    check_webhook(webhook, _settings(call), known_events(call.database))


def _shown_now(call: Call, webhook: Webhook) -> ShownWebhook:
    from svc_events.api import destination_states

    from svc_events_webhook.sink import SINK

    return _shown(call, webhook, destination_states(call.database, SINK).get(webhook.id))


def _shown(call: Call, webhook: Webhook, state: Any) -> ShownWebhook:
    from svc_events_webhook.store import secrets_of

    record = secrets_of(webhook, call.database.system())
    shown = ShownWebhook(
        id=webhook.id,
        url=webhook.url,
        events=webhook.events,
        path_prefix=webhook.path_prefix,
        enabled=webhook.enabled,
        format=webhook.format,
        user_id=webhook.user_id,
        has_secret=record is not None,
        old_secret_until=None if record is None or record.old_secret is None else record.old_until_ms,
    )
    if state is None or not webhook.enabled:
        return shown
    return replace(
        shown,
        place=state.place,
        commits_behind=state.commits_behind,
        failures=state.failures,
        failing_since=state.failing_since,
        error=state.error,
        retry_at=state.retry_at,
    )
