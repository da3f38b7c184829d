"""Keys of users of the file: what a new one looks like, and the hash that the file holds of it."""

from __future__ import annotations

import re
import secrets
import uuid

from blake3 import blake3

__all__ = ["hash_of_key", "is_key_hash", "key_id_of", "new_key"]

_CONTEXT = "svc auth.file API key, 2026"
_PREFIX = "blake3:"
_FORM = re.compile(rf"{_PREFIX}[0-9a-f]{{64}}")


def new_key() -> str:
    """Returns the text of a new key, with 256 random bits."""
    return f"svc_k_{uuid.uuid4().hex}_{secrets.token_hex(32)}"


def hash_of_key(key: str) -> str:
    """Returns what the file holds of a key: ``blake3:`` and 64 hex digits.

    A plain hash is enough for 256 random bits; its context keeps it apart from every other hash.
    """
    digest = blake3(key.encode("utf-8", "surrogatepass"), derive_key_context=_CONTEXT).hexdigest()
    return _PREFIX + digest


def is_key_hash(text: str) -> bool:
    """Whether a text has the form of such a hash."""
    return _FORM.fullmatch(text) is not None


def key_id_of(key_hash: str) -> str:
    """Returns the id of a key as a UUID. It follows from the hash, so that the file need not hold it."""
    return str(uuid.UUID(hex=key_hash.removeprefix(_PREFIX)[:32]))
