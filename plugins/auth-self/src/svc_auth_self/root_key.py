"""The root key: made and printed once, at the first start; ``svc reset-root-key`` makes another."""

from __future__ import annotations

from collections.abc import Iterator

from svc.errors import Conflict, NotFound, PreconditionFailed
from svc.plugin import ROOT_USER_ID, Database, Transaction
from svc_auth_self.keys import DAY_MS, create_key, keys_of, revoke_key
from svc_auth_self.models import LONGEST_KEY_DAYS
from svc_auth_self.records import absent, now_ms
from svc_auth_self.refresh import chains_of

__all__ = ["ensure_root_key", "reset_root_key"]

_MARK = ("auth-secrets", "root-key")
_ATTEMPTS = 20


def ensure_root_key(database: Database) -> Iterator[str]:
    """Makes the first root key of a database; yields the lines that show it, or none if it had one.

    The key is committed when the line after it is asked for: whoever ends before that, by a crash too, leaves
    a database without a root key, and the next start makes one.
    """
    if database.system().get(_MARK) is not None:
        return
    transaction = database.transaction(actor=ROOT_USER_ID, message="make the root key")
    key_id, text = _add(database, transaction)
    transaction.put_system(_MARK, key_id.encode(), condition=absent())
    yield f"Root key: {text}"
    try:
        transaction.commit()
    except PreconditionFailed:
        yield "Another server that started at the same moment has made the root key: this one is not valid."
        return
    yield "Keep it: it is not shown again. 'svc login URL' takes it; 'svc reset-root-key' makes a new one."


def reset_root_key(database: Database) -> tuple[str, int]:
    """Revokes every key of root, makes a new one, and ends root's refresh tokens; all in one commit.

    Returns the text of the new key, and how many were revoked. Conflict: root's keys change all the time.
    """
    for _ in range(_ATTEMPTS):
        system = database.system()
        transaction = database.transaction(actor=ROOT_USER_ID, message="reset the root key")
        revoked = [record.key_id for record in keys_of(system, ROOT_USER_ID)]
        try:
            for key_id in revoked:
                revoke_key(database, transaction, key_id)
            for chain in chains_of(system, ROOT_USER_ID):
                transaction.delete_system(chain)
            key_id, text = _add(database, transaction)
            transaction.put_system(_MARK, key_id.encode())
            transaction.commit()
        except NotFound:
            continue  # a key or a chain ended meanwhile: look again
        return text, len(revoked)
    raise Conflict("Root's keys change all the time; try again.")


def _add(database: Database, transaction: Transaction) -> tuple[str, str]:
    record, text = create_key(
        database,
        transaction,
        user_id=ROOT_USER_ID,
        label="root",
        expires_at=now_ms() + LONGEST_KEY_DAYS * DAY_MS,
        rules=(),
        created_by=ROOT_USER_ID,
    )
    return record.key_id, text
