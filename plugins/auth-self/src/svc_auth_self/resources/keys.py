"""``/auth/keys`` and its older paths: make, list and revoke API keys.

Everybody who is signed in has keys of their own. Who came by a scoped key gets no new ones by it, and sees
and revokes that one key only: what narrows a key must not be got around by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import falcon
import msgspec

from svc.errors import Conflict, Forbidden, InvalidInput, NotFound
from svc.plugin import (
    ROOT_USER_ID,
    Identity,
    RequestContext,
    Version,
    context_of,
    query_number,
    query_text,
    read_json,
    requires_identity,
    requires_root,
    run_blocking,
    send_json,
)
from svc_auth_self.keys import (
    DAY_MS,
    DEFAULT_KEY_DAYS,
    LONGEST_KEY_DAYS,
    KeyRecord,
    count_keys,
    create_key,
    find_key,
    keys_after,
    keys_of,
    revoke_key,
)
from svc_auth_self.records import now_ms
from svc_auth_self.settings import settings_of
from svc_auth_self.sign_in import token_mode

__all__ = ["AdminKeyResource", "AdminKeysResource", "KeyResource", "KeysResource"]

NEXT_HEADER = "X-Svc-Next-Key"
MOST_LISTED = 1_000
_MOST_LABEL = 200


class KeyBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a key."""

    label: str | None = None
    expires_in_days: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_KEY_DAYS)] | None = None
    rules: list[dict[str, str]] | None = None
    user_id: str | None = None


class KeysResource:
    """The caller's keys; for root, everybody's."""

    @requires_identity
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Makes a key, and shows its text this once."""
        _make(req, resp)

    @requires_identity
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Lists a page of keys, oldest first."""
        _list(req, resp)


class KeyResource:
    """One key."""

    @requires_identity
    def on_delete(self, req: falcon.Request, resp: falcon.Response, key_id: str) -> None:
        """Revokes it: its tokens end with the next request."""
        _revoke(req, resp, key_id)


class AdminKeysResource:
    """Everybody's keys, for root."""

    @requires_root
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Makes a key for any user."""
        _make(req, resp)

    @requires_root
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Lists a page of keys, oldest first."""
        _list(req, resp)


class AdminKeyResource:
    """One key of anybody, for root."""

    @requires_root
    def on_delete(self, req: falcon.Request, resp: falcon.Response, key_id: str) -> None:
        """Revokes it."""
        _revoke(req, resp, key_id)


def _make(req: falcon.Request, resp: falcon.Response) -> None:
    context = context_of(req)
    token_mode(context)
    body = read_json(req, KeyBody)
    user_id = _owner(context, body.user_id)
    database = context.database
    most = settings_of(database).keys_per_user
    if user_id != ROOT_USER_ID and count_keys(database.system(), user_id) >= most:
        raise Conflict(f"A user may have at most {most} keys; revoke some.", limit=most)
    days = DEFAULT_KEY_DAYS if body.expires_in_days is None else body.expires_in_days
    with database.transaction(actor=context.actor, message="make an API key") as transaction:
        record, text = create_key(
            database,
            transaction,
            user_id=user_id,
            label=_label(body.label or ""),
            expires_at=now_ms() + days * DAY_MS,
            rules=body.rules or (),
            created_by=context.identity.user_id,
        )
    resp.set_header("Cache-Control", "no-store")
    send_json(
        resp,
        {
            "key_id": record.key_id,
            "key": text,
            "user_id": record.user_id,
            "label": record.label,
            "expires_at": record.expires_at,
            "rules": record.rules,
        },
        201,
    )


def _owner(context: RequestContext, wanted: str | None) -> str:
    """Whose key is to be made.

    Raises Forbidden where the caller came by a scoped key, or asks for another's and is not root, and
    NotFound for no user, or one who may not sign in.
    """
    identity = context.identity
    if identity.rules or identity.user_id is None:
        raise Forbidden("A scoped key makes no keys; sign in with one that has no rules.")
    if wanted is None or wanted == identity.user_id:
        return identity.user_id
    if not identity.is_root:
        raise Forbidden("Only root makes keys of other users.", field="user_id")
    account = token_mode(context).accounts.find(wanted)
    if account is None or not account.is_active:
        raise NotFound("There is no active user of this id.", field="user_id")
    return account.user_id


def _label(label: str) -> str:
    if len(label) > _MOST_LABEL or not label.isprintable():
        raise InvalidInput(
            f"A label has at most {_MOST_LABEL} characters, and no control characters.", field="label"
        )
    return label


def _list(req: falcon.Request, resp: falcon.Response) -> None:
    context = context_of(req)
    token_mode(context)
    limit = query_number(req, "limit", MOST_LISTED, minimum=1, maximum=MOST_LISTED) or MOST_LISTED
    after, user_id = query_text(req, "after"), query_text(req, "user_id")
    system = context.database.system()
    found = run_blocking(_page, system, context.identity, user_id, after, limit + 1)
    if len(found) > limit:
        resp.set_header(NEXT_HEADER, found[limit - 1].key_id)
    send_json(resp, [_shown(record) for record in found[:limit]])


def _page(
    system: Version, identity: Identity, user_id: str | None, after: str | None, count: int
) -> list[KeyRecord]:
    return list(islice(_visible(system, identity, user_id, after), count))


def _visible(
    system: Version, identity: Identity, user_id: str | None, after: str | None
) -> Iterator[KeyRecord]:
    """The keys that a caller may see, oldest first."""
    if identity.is_unrestricted_root:
        return keys_after(system, after) if user_id is None else keys_of(system, user_id, after)
    if user_id not in (None, identity.user_id):
        return iter(())
    if identity.user_id is None or identity.rules:
        own = None if identity.key_id is None else find_key(system, identity.key_id)
        return iter(() if own is None or (after is not None and own.key_id <= after) else (own,))
    return keys_of(system, identity.user_id, after)


def _shown(record: KeyRecord) -> dict[str, Any]:
    return {
        "key_id": record.key_id,
        "label": record.label,
        "user_id": record.user_id,
        "expires_at": record.expires_at,
        "created_at": record.created_at,
        "rules": record.rules,
    }


def _revoke(req: falcon.Request, resp: falcon.Response, key_id: str) -> None:
    context = context_of(req)
    token_mode(context)
    identity = context.identity
    record = find_key(context.database.system(), key_id)
    if record is None or not _may_revoke(identity, record):
        raise NotFound("There is no key of this id.")
    with context.database.transaction(actor=context.actor, message="revoke an API key") as transaction:
        revoke_key(context.database, transaction, record.key_id)
    send_json(resp, {"revoked": True, "key_id": record.key_id})


def _may_revoke(identity: Identity, record: KeyRecord) -> bool:
    if identity.is_unrestricted_root:
        return True
    if identity.user_id is None:
        return False  # who follows a link does not end it for the others
    if identity.rules:
        return record.key_id == identity.key_id
    return record.user_id == identity.user_id
