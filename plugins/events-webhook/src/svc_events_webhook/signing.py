"""Secrets, and what a request is signed with.

Standard Webhooks (https://github.com/standard-webhooks/standard-webhooks, specification of 2023): the header
fields ``webhook-id``, ``webhook-timestamp`` and ``webhook-signature``. ``X-Svc-Signature`` is beside them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Sequence

from svc.errors import InvalidInput

__all__ = ["make_secret", "parse_secret", "signature_fields"]

_PREFIX = "whsec_"
_KEY_BYTES = 32


def make_secret() -> str:
    """Returns a new secret."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def parse_secret(secret: str) -> bytes:
    """Returns the key that a secret stands for.

    Raises:
        InvalidInput: it is none: ``whsec_`` and the base64 of 16 to 64 bytes.
    """
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(_PREFIX) or not 16 <= len(key) <= 64:
        raise InvalidInput("A secret is whsec_ and the base64 of 16 to 64 bytes.", field="secret")
    return key


def signature_fields(keys: Sequence[bytes], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Returns the header fields that tell of a message and prove who sent it.

    Args:
        keys: the keys in use, the newest first; none: it is not signed.
        message_id: the same for each try.
        timestamp: when it is sent, Unix seconds.
        body: the body.
    """
    fields = {"webhook-id": message_id, "webhook-timestamp": str(timestamp)}
    if keys:
        content = f"{message_id}.{timestamp}.".encode() + body
        signed = (base64.b64encode(_mac(key, content)).decode() for key in keys)
        fields["webhook-signature"] = " ".join(f"v1,{one}" for one in signed)
        fields["X-Svc-Signature"] = "sha256=" + _mac(keys[0], body).hex()
    return fields


def _mac(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, hashlib.sha256).digest()
