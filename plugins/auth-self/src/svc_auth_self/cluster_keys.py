"""Keys that several databases have: what each signs is good in all of them.

One is shared for good, and signs what databases send each other. The active key of the first is given along,
so that tokens of its users are good in the others until one of them makes a new key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from svc.errors import InvalidInput
from svc.plugin import ROOT_USER_ID, Database, Transaction
from svc_auth_self.secret_hashes import secret_hashes
from svc_auth_self.signing import (
    SharedSigningKeys,
    SigningRecord,
    active_record,
    make_shared,
    put_active,
    put_shared,
    shared_record,
)
from svc_auth_self.tokens import TokenWriter

__all__ = ["root_token", "signing_keys", "take_signing_keys"]

_HEX_32 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_KID = re.compile(r"[0-9a-z]{16}", re.ASCII)
_SHARED, _ACTIVE = "shared", "active"


def root_token(database: Database, lifetime_s: int) -> str | None:
    """Returns a token of root, signed by the shared key; None where nothing is shared. Blocks.

    Args:
        database: whose key signs.
        lifetime_s: seconds for which it is good.
    """
    if shared_record(database) is None:
        return None
    token, _ = TokenWriter(SharedSigningKeys(database)).write(ROOT_USER_ID, None, lifetime_s, None)
    return token


def signing_keys(database: Database, *, with_active: bool = True) -> list[dict[str, Any]]:
    """Returns the shared key and the active one WITH their private keys, for another database to take.

    Args:
        database: whose keys they are.
        with_active: whether the active key is among them, so that tokens of users are good there too.

    Each is a record with one member more, ``use``. The shared key is made when it is first asked for, and so
    is the key by which secrets are hashed, which nodes exchange: may commit.
    """
    secret_hashes(database)
    found = [{**msgspec.to_builtins(make_shared(database)), "use": _SHARED}]
    active = active_record(database) if with_active else None
    if active is not None:
        found.append({**msgspec.to_builtins(active), "use": _ACTIVE})
    return found


def take_signing_keys(database: Database, changes: Transaction, keys: Sequence[dict[str, Any]]) -> None:
    """Takes over, in a transaction, what ``signing_keys`` of another database has returned.

    Raises:
        InvalidInput: it is no such thing.
    """
    for key in keys:
        try:
            record = msgspec.convert(key, SigningRecord)
        except msgspec.ValidationError as error:
            raise InvalidInput("This is no signing key.", field="signing_keys") from error
        texts = record.public, record.private or ""
        is_whole = all(map(_HEX_32.fullmatch, texts)) and record.ends_at is None
        if not _KID.fullmatch(record.kid) or not is_whole or key.get("use") not in (_SHARED, _ACTIVE):
            raise InvalidInput("This is no signing key.", field="signing_keys")
        if key["use"] == _SHARED:
            put_shared(changes, record)
        else:
            put_active(database, changes, record)
