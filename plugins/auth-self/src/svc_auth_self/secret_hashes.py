"""Keyed hashes of secrets: what is stored instead of a key or a token.

The key of the hash is 32 random bytes that the database makes once. It is in no backup, so that hashes
which get out say nothing without the database file itself.
"""

from __future__ import annotations

import hmac
import secrets
from weakref import WeakKeyDictionary

from blake3 import blake3

from svc.errors import InternalError, PreconditionFailed
from svc.plugin import Database, Hash
from svc_auth_self.records import absent

__all__ = ["SecretHashes", "secret_hashes"]

_PATH = ("auth-secrets", "hash-key")
_KEY_BYTES = 32

_known: WeakKeyDictionary[Database, tuple[Hash, SecretHashes]] = WeakKeyDictionary()


class SecretHashes:
    """Hashes the secrets of one database."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, secret: str) -> str:
        """Returns the keyed hash of a secret, in hex."""
        return blake3(secret.encode("utf-8", "surrogatepass"), key=self._key).hexdigest()

    def fits(self, secret: str, stored: str) -> bool:
        """Whether a secret has a stored hash; takes as long for every wrong one."""
        return hmac.compare_digest(self.of(secret).encode(), stored.encode("utf-8", "surrogatepass"))

    def __repr__(self) -> str:
        return "SecretHashes()"


def secret_hashes(database: Database) -> SecretHashes:
    """Returns the hashes of a database; makes their key when it has none. May commit, once a database.

    Raises ReadOnly where the database has no key yet and is open for reading.
    """
    entry = database.system().get(_PATH)
    known = _known.get(database)
    if entry is not None and known is not None and known[0] == entry.hash:
        return known[1]
    if entry is None:
        try:
            with database.transaction(message="make the key of the hashes of secrets") as transaction:
                transaction.put_system(_PATH, secrets.token_bytes(_KEY_BYTES), condition=absent())
        except PreconditionFailed:
            pass  # another process was first, and its key counts
        entry = database.system().get(_PATH)
    system = database.system()
    if entry is None or len(key := system.read_all(entry)) != _KEY_BYTES:
        raise InternalError("The key of the hashes of secrets is not in order.")
    hashes = SecretHashes(key)
    _known[database] = (entry.hash, hashes)
    return hashes
