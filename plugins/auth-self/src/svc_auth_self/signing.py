"""The keys that sign tokens: Ed25519, one active, the retired ones known until what they signed has ended.

A record of the active key holds the private key; that of a retired one only the public key. The pointer
beside them names the active key, and every change of it is one compare-and-swap.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

from svc.errors import NotFound, PreconditionFailed, ServiceUnavailable
from svc.plugin import Condition, Confidential, Database, Path, Transaction, Version
from svc_auth_self.records import absent, decode, encode, now_ms, read, same

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = [
    "SharedSigningKeys",
    "SigningKeys",
    "SigningRecord",
    "active_record",
    "make_shared",
    "put_active",
    "put_shared",
    "remove_ended",
    "rotate",
    "rotate_now",
    "shared_record",
]

KEYS = "signing-keys"
_ACTIVE = ("auth-secrets", "signing-key")
_SHARED = ("auth-secrets", "shared-key")
_MOST_KNOWN = 64
_ATTEMPTS = 20
_SLACK_MS = 60_000
"""A process that read the active key just before it was retired has signed with it by then."""


class SigningRecord(Confidential, frozen=True, kw_only=True, omit_defaults=True):
    """What is stored of a signing key. Its representation does not show the private key.

    Attributes:
        kid: what tokens call it.
        public: 32 bytes in hex.
        private: 32 bytes in hex; None once it is retired.
        longest_s: seconds for which the tokens that it signs are good at most.
        ends_at: of a retired key, when the last token that it signed has ended. Unix milliseconds.
    """

    shown = ("kid", "ends_at")

    kid: str
    public: str
    private: str | None = None
    created_at: int
    longest_s: int = 0
    ends_at: int | None = None


class ActiveKey(msgspec.Struct, frozen=True):
    """The pointer to the active key."""

    kid: str


class SigningKeys:
    """The signing keys of one database. Safe in every thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._public: OrderedDict[bytes, Ed25519PublicKey | None] = OrderedDict()
        self._private: tuple[bytes, Ed25519PrivateKey] | None = None

    def public(self, kid: str) -> Ed25519PublicKey | None:
        """Returns the key that checks what ``kid`` has signed, or None; O(log n) of the keys."""
        if not _is_kid(kid):
            return None
        system = self._database.system()
        entry = system.get((KEYS, kid))
        if entry is None:
            return None
        known = self._public.get(entry.hash)
        return known if known is not None else self._read_public(system, entry.hash, kid)

    def active(self, lifetime_s: int) -> tuple[str, Ed25519PrivateKey]:
        """Returns the kid and the key to sign with; makes one when there is none. May commit.

        Raises ServiceUnavailable where the keys change all the time.
        """
        for _ in range(_ATTEMPTS):
            system = self._database.system()
            pointer = read(system, _ACTIVE, ActiveKey)
            found = None if pointer is None else read(system, (KEYS, pointer[0].kid), SigningRecord)
            if found is not None and found[0].private is not None:
                record, entry = found
                if record.longest_s >= lifetime_s:
                    return record.kid, self._private_key(entry.hash, found[0].private)
                _try_put(self._database, record, msgspec.structs.replace(record, longest_s=lifetime_s))
                continue
            rotate(self._database, lifetime_s)
        raise ServiceUnavailable("The signing keys change all the time; try again.", retry_after=1)

    def _read_public(self, system: Version, content: bytes, kid: str) -> Ed25519PublicKey | None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        found = read(system, (KEYS, kid), SigningRecord)
        if found is None or found[0].kid != kid:
            return None
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(found[0].public))
        except ValueError:
            return None
        with self._lock:
            self._public[content] = key
            if len(self._public) > _MOST_KNOWN:
                self._public.popitem(last=False)
        return key

    def _private_key(self, content: bytes, text: str) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        known = self._private
        if known is None or known[0] != content:
            known = self._private = (content, Ed25519PrivateKey.from_private_bytes(bytes.fromhex(text)))
        return known[1]


def rotate(
    database: Database,
    lifetime_s: int,
    *,
    older_than_ms: int | None = None,
    end_tokens: bool = False,
    actor: str | None = None,
) -> str | None:
    """Makes a new active key and retires the one before; tokens go on being good. Commits.

    ``lifetime_s`` is the seconds for which what the new key signs is good. ``older_than_ms``: only when the
    active key was made before this time. ``end_tokens`` forgets all keys before, so that no access token is
    good any more.

    Returns the kid of the new key; None when the active one is new enough, or another process was faster.
    """
    system = database.system()
    pointer = read(system, _ACTIVE, ActiveKey)
    before = None if pointer is None else read(system, (KEYS, pointer[0].kid), SigningRecord)
    if before is not None and older_than_ms is not None and before[0].created_at >= older_than_ms:
        return None
    record = _new_record(lifetime_s)
    transaction = database.transaction(actor=actor, message="make a new signing key")
    transaction.put_system(
        _ACTIVE, encode(ActiveKey(record.kid)), condition=absent() if pointer is None else same(pointer[1])
    )
    shared = shared_record(database)
    if end_tokens and system.get((KEYS,)) is not None:
        transaction.delete_system((KEYS,))
        if shared is not None:
            # Other databases sign with it too, and what it signs is good for minutes.
            transaction.put_system((KEYS, shared.kid), encode(shared))
    elif before is not None:
        ends_at = now_ms() + before[0].longest_s * 1_000 + _SLACK_MS
        retired = msgspec.structs.replace(before[0], private=None, ends_at=ends_at)
        transaction.put_system((KEYS, retired.kid), encode(retired), condition=same(before[1]))
    transaction.put_system((KEYS, record.kid), encode(record), condition=absent())
    try:
        transaction.commit()
    except (NotFound, PreconditionFailed):
        return None
    return record.kid


def _new_record(lifetime_s: int) -> SigningRecord:
    # Megabytes, which a process that only looks whether it is time does without.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    return SigningRecord(
        kid=secrets.token_hex(8),
        public=private.public_key().public_bytes_raw().hex(),
        private=private.private_bytes_raw().hex(),
        created_at=now_ms(),
        longest_s=lifetime_s,
    )


def rotate_now(
    database: Database, lifetime_s: int, *, end_tokens: bool = False, actor: str | None = None
) -> str:
    """Makes a new active key, whoever else does so too; returns its kid. Commits; arguments as ``rotate``.

    Raises ServiceUnavailable where the keys change all the time.
    """
    for _ in range(_ATTEMPTS):
        kid = rotate(database, lifetime_s, end_tokens=end_tokens, actor=actor)
        if kid is not None:
            return kid
    raise ServiceUnavailable("The signing keys change all the time; try again.", retry_after=1)


def remove_ended(database: Database) -> int:
    """Removes the retired keys of which no token can be good any more; returns how many. Commits."""
    system = database.system()
    if system.get((KEYS,)) is None:
        return 0
    removed = 0
    now = now_ms()
    for kid, entry in list(system.entries((KEYS,))):
        record = decode(system, entry, SigningRecord)
        if record is not None and record.ends_at is not None and record.ends_at <= now:
            try:
                with database.transaction(message="remove a signing key that has ended") as transaction:
                    transaction.delete_system((KEYS, kid))
            except NotFound:
                continue
            removed += 1
    return removed


def _try_put(database: Database, before: SigningRecord, after: SigningRecord) -> None:
    """Replaces a record unless another process changed it meanwhile."""
    found = read(database.system(), (KEYS, before.kid), SigningRecord)
    if found is None or found[0] != before:
        return
    try:
        with database.transaction(message="note the lifetime of tokens") as transaction:
            transaction.put_system((KEYS, before.kid), encode(after), condition=same(found[1]))
    except PreconditionFailed:
        pass


def _is_kid(text: str) -> bool:
    return len(text) == 16 and text.isascii() and text.isalnum()


def active_record(database: Database) -> SigningRecord | None:
    """Returns the active signing key with its private key; None while there is none."""
    return _record_of(database.system(), _ACTIVE)


def shared_record(database: Database) -> SigningRecord | None:
    """Returns the key that is shared with other databases, with its private key; None while there is none."""
    return _record_of(database.system(), _SHARED)


def make_shared(database: Database) -> SigningRecord:
    """Returns the key to share with other databases; makes it where there is none. It is never rotated."""
    while True:
        found = shared_record(database)
        if found is not None:
            return found
        pointer = read(database.system(), _SHARED, ActiveKey)
        transaction = database.transaction(message="make a key to share")
        put_shared(transaction, _new_record(0), absent() if pointer is None else same(pointer[1]))
        with contextlib.suppress(PreconditionFailed):
            transaction.commit()


def put_shared(changes: Transaction, record: SigningRecord, condition: Condition | None = None) -> None:
    """Makes a key the shared one, in a transaction."""
    changes.put_system(_SHARED, encode(ActiveKey(record.kid)), condition=condition)
    changes.put_system((KEYS, record.kid), encode(record))


def put_active(database: Database, changes: Transaction, record: SigningRecord) -> None:
    """Makes a key of another database the active one, in a transaction; the one before is retired."""
    before = active_record(database)
    if before is not None and before.kid != record.kid:
        ends_at = now_ms() + before.longest_s * 1_000 + _SLACK_MS
        retired = msgspec.structs.replace(before, private=None, ends_at=ends_at)
        changes.put_system((KEYS, before.kid), encode(retired))
    pointer = read(database.system(), _ACTIVE, ActiveKey)
    condition = absent() if pointer is None else same(pointer[1])
    changes.put_system(_ACTIVE, encode(ActiveKey(record.kid)), condition=condition)
    changes.put_system((KEYS, record.kid), encode(record))


def _record_of(system: Version, place: Path) -> SigningRecord | None:
    pointer = read(system, place, ActiveKey)
    found = None if pointer is None else read(system, (KEYS, pointer[0].kid), SigningRecord)
    return None if found is None or found[0].private is None else found[0]


class SharedSigningKeys(SigningKeys):
    """Signs with the key that databases share."""

    def active(self, lifetime_s: int) -> tuple[str, Ed25519PrivateKey]:
        """Returns the kid and the key to sign with; ServiceUnavailable where nothing is shared."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        record = shared_record(self._database)
        if record is None or record.private is None:
            raise ServiceUnavailable("There is no shared key.", retry_after=1)
        return record.kid, Ed25519PrivateKey.from_private_bytes(bytes.fromhex(record.private))
