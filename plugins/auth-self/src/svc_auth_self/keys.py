"""API keys: their text, their records, and how they are made, found and revoked.

A key is ``svc_k_<id>_<secret>``: the id finds the record, the secret (256 random bits) is stored as a keyed
hash. A revoked key has no record any more.
"""

from __future__ import annotations

import re
import secrets
import time
import uuid
from collections.abc import Iterator, Sequence

from svc.errors import NotFound
from svc.plugin import ROOT_USER_ID, Confidential, Database, Transaction, Version
from svc_auth_self.records import absent, decode, encode, now_ms, read
from svc_auth_self.rules import check_rules
from svc_auth_self.secret_hashes import secret_hashes

__all__ = [
    "DAY_MS",
    "KeyRecord",
    "count_keys",
    "create_key",
    "find_key",
    "key_id_of",
    "keys_after",
    "keys_of",
    "revoke_key",
    "verified_key",
]

DAY_MS = 86_400_000

KEYS = "api-keys"
KEYS_OF = "api-keys-of"
_TEXT = re.compile(r"svc_k_([0-9a-f]{32})_([0-9a-f]{64})", re.ASCII)


class KeyRecord(Confidential, frozen=True, kw_only=True):
    """What is stored of a key. Its representation does not show the hash.

    Attributes:
        key_id: UUID; later keys have greater ones.
        user_id: the owner; None is a share key, whose rules are its only authority.
        label: what people call it.
        hash: keyed hash of the secret, in hex.
        created_at: Unix milliseconds.
        expires_at: Unix milliseconds.
        rules: objects with one member, a path glob with its flags; empty: no restriction.
        created_by: who made it (a user id), if known.
        kind: ``user``, or ``share`` for the key of a link.
    """

    shown = ("key_id", "user_id", "kind")

    key_id: str
    user_id: str | None
    label: str
    hash: str
    created_at: int
    expires_at: int
    rules: tuple[dict[str, str], ...] = ()
    created_by: str | None = None
    kind: str = "user"

    @property
    def is_root_key(self) -> bool:
        """Whether it lets its bearer do everything."""
        return self.user_id == ROOT_USER_ID and not self.rules

    def is_expired(self, at_ms: int) -> bool:
        """Whether it was good before a time, and is not any more."""
        return at_ms >= self.expires_at


def create_key(
    database: Database,
    transaction: Transaction,
    *,
    user_id: str | None,
    label: str,
    expires_at: int,
    rules: Sequence[dict[str, str]],
    created_by: str | None,
    kind: str = "user",
) -> tuple[KeyRecord, str]:
    """Adds a new key to a transaction; the key is good once that is committed.

    ``rules`` are checked here; empty: no restriction.

    Returns:
        The record, and the text of the key, which nothing can show again.

    Raises:
        InvalidInput: a rule is not in order.
    """
    hashes = secret_hashes(database)
    key_id = _new_id()
    secret = secrets.token_hex(32)
    record = KeyRecord(
        key_id=key_id,
        user_id=user_id,
        label=label,
        hash=hashes.of(secret),
        created_at=now_ms(),
        expires_at=expires_at,
        rules=check_rules(rules),
        created_by=created_by,
        kind=kind,
    )
    transaction.put_system((KEYS, key_id), encode(record), condition=absent())
    if user_id is not None:
        transaction.put_system((KEYS_OF, user_id, key_id), b"")
    return record, f"svc_k_{uuid.UUID(key_id).hex}_{secret}"


def find_key(system: Version, key_id: str) -> KeyRecord | None:
    """Returns the record of a key by its id; None when there is none. Expired keys have records too."""
    if _normal_id(key_id) != key_id:
        return None
    found = read(system, (KEYS, key_id), KeyRecord)
    return None if found is None else found[0]


def revoke_key(database: Database, transaction: Transaction, key_id: str) -> KeyRecord:
    """Adds the end of a key to a transaction; its tokens end with the commit.

    Raises:
        NotFound: there is no such key; at the commit: another revoked it just now.
    """
    system = database.system()
    record = find_key(system, key_id)
    if record is None:
        raise NotFound("There is no key of this id.")
    transaction.delete_system((KEYS, record.key_id))
    if record.user_id is not None and system.get((KEYS_OF, record.user_id, record.key_id)) is not None:
        transaction.delete_system((KEYS_OF, record.user_id, record.key_id))
    return record


def verified_key(database: Database, text: str) -> KeyRecord | None:
    """Returns the record of a key by its text; None when it is no key, is unknown, revoked or expired."""
    parts = _TEXT.fullmatch(text)
    if parts is None:
        return None
    record = find_key(database.system(), str(uuid.UUID(parts[1])))
    if record is None or not secret_hashes(database).fits(parts[2], record.hash):
        return None
    return None if record.is_expired(now_ms()) else record


def key_id_of(text: str) -> str | None:
    """Returns the id that the text of a key names, whether or not there is such a key."""
    parts = _TEXT.fullmatch(text)
    return None if parts is None else str(uuid.UUID(parts[1]))


def count_keys(system: Version, user_id: str) -> int:
    """Returns how many keys a user has; does not look at them."""
    directory = (KEYS_OF, user_id)
    return 0 if system.get(directory) is None else system.entry_count(directory)


def keys_of(system: Version, user_id: str, after: str | None = None) -> Iterator[KeyRecord]:
    """Yields the keys of a user, oldest first, behind the id ``after``."""
    if system.get((KEYS_OF, user_id)) is None:
        return
    for key_id, _ in system.entries((KEYS_OF, user_id), after=after):
        record = find_key(system, key_id)
        if record is not None:
            yield record


def keys_after(system: Version, after: str | None = None) -> Iterator[KeyRecord]:
    """Yields all keys, oldest first, behind the id ``after``."""
    if system.get((KEYS,)) is None:
        return
    for _, entry in system.entries((KEYS,), after=after):
        record = decode(system, entry, KeyRecord)
        if record is not None:
            yield record


def _new_id() -> str:
    """A UUID of version 7 (RFC 9562): in the order of time, so that listings are in it too."""
    bits = (time.time_ns() // 1_000_000) << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62
    return str(uuid.UUID(int=bits | secrets.randbits(62)))


def _normal_id(text: str) -> str | None:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return None
