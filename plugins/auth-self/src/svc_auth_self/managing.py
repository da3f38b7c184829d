"""API keys as their owners and root manage them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from svc.errors import Conflict, Forbidden, InvalidInput, NotFound
from svc.plugin import ROOT_USER_ID, Call, Identity, Version, run_blocking
from svc_auth_self import keys
from svc_auth_self.accounts import Accounts
from svc_auth_self.keys import DAY_MS, KeyRecord, count_keys, find_key, keys_after, keys_of
from svc_auth_self.models import DEFAULT_KEY_DAYS, ApiKey, ApiKeyPage, KeyQuery, NewApiKey, NewKey, RevokedKey
from svc_auth_self.records import now_ms
from svc_auth_self.sign_in import accounts_of

__all__ = ["create_key", "list_keys", "revoke_key"]

_MOST_LABEL = 200


def create_key(call: Call, wanted: NewKey) -> NewApiKey:
    """Makes a key. Commits.

    Raises:
        Conflict: the user has as many as there may be, or the server's auth mode has no keys.
        Forbidden: the caller came by a scoped key, or names another user and is not root.
        NotFound: there is no such user, or it may not sign in.
        InvalidInput: the label or a rule is not in order.
    """
    user_id = _owner(call.identity, accounts_of(call), wanted.user_id)
    database, most = call.database, call.configuration.keys_per_user
    if user_id != ROOT_USER_ID and count_keys(database.system(), user_id) >= most:
        raise Conflict(f"A user may have at most {most} keys; revoke some.", limit=most)
    days = DEFAULT_KEY_DAYS if wanted.expires_in_days is None else wanted.expires_in_days
    with database.transaction(actor=call.identity.user_id, message="make an API key") as transaction:
        record, text = keys.create_key(
            database,
            transaction,
            user_id=user_id,
            label=_label(wanted.label or ""),
            expires_at=now_ms() + days * DAY_MS,
            rules=wanted.rules or (),
            created_by=call.identity.user_id,
        )
    return NewApiKey(
        key_id=record.key_id,
        key=text,
        user_id=user_id,
        label=record.label,
        expires_at=record.expires_at,
        rules=list(record.rules),
    )


def list_keys(call: Call, query: KeyQuery) -> ApiKeyPage:
    """Returns a part of the keys that the caller may see, oldest first; Conflict as ``create_key``."""
    accounts_of(call)
    system = call.database.system()
    found = run_blocking(_first, _visible(system, call.identity, query.user_id, query.after), query.limit + 1)
    shown = [_shown(record) for record in found[: query.limit]]
    has_more = len(found) > query.limit
    return ApiKeyPage(shown, has_more=has_more, next_cursor=shown[-1].key_id if has_more else None)


def revoke_key(call: Call, key_id: str) -> RevokedKey:
    """Revokes a key. Commits; raises as ``create_key``, and NotFound where the caller may not revoke it."""
    accounts_of(call)
    identity, database = call.identity, call.database
    record = find_key(database.system(), key_id)
    if record is None or not _may_revoke(identity, record):
        raise NotFound("There is no key of this id.")
    with database.transaction(actor=identity.user_id, message="revoke an API key") as transaction:
        keys.revoke_key(database, transaction, record.key_id)
    return RevokedKey(True, record.key_id)


def _owner(identity: Identity, accounts: Accounts, wanted: str | None) -> str:
    if identity.rules or identity.user_id is None:
        raise Forbidden("A scoped key makes no keys; sign in with one that has no rules.")
    if wanted is None or wanted == identity.user_id:
        return identity.user_id
    if not identity.is_root:
        raise Forbidden("Only root makes keys of other users.", field="user_id")
    account = accounts.find(wanted)
    if account is None or not account.is_active:
        raise NotFound("There is no active user of this id.", field="user_id")
    return account.user_id


def _label(label: str) -> str:
    if len(label) > _MOST_LABEL or not label.isprintable():
        raise InvalidInput(
            f"A label has at most {_MOST_LABEL} characters, and no control characters.", field="label"
        )
    return label


def _first(records: Iterator[KeyRecord], count: int) -> list[KeyRecord]:
    return list(islice(records, count))


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


def _shown(record: KeyRecord) -> ApiKey:
    return ApiKey(
        key_id=record.key_id,
        label=record.label,
        user_id=record.user_id,
        expires_at=record.expires_at,
        created_at=record.created_at,
        rules=list(record.rules),
    )


def _may_revoke(identity: Identity, record: KeyRecord) -> bool:
    if identity.is_unrestricted_root:
        return True
    if identity.user_id is None:
        return False  # who follows a link does not end it for the others
    if identity.rules:
        return record.key_id == identity.key_id
    return record.user_id == identity.user_id
