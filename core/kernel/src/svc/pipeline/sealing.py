"""Texts that a client keeps for us and must not read: cursors of pages that end where it may see nothing.

What is sealed works in every copy of the database, in every process, and after a restart.
"""

from __future__ import annotations

from blake3 import blake3

__all__ = ["seal", "unseal"]

_TAG_BYTES = 16
_PADDED_TO = 64


def seal(database_id: bytes, content: bytes, purpose: str) -> bytes:
    """Returns a content in a form that tells nothing of it but about how long it is.

    The same content is sealed to the same bytes. There is no proof of age: what was sealed once opens always.

    Args:
        database_id: of the database. It is random, and only root is told it, so that it serves as a secret.
        content: must not end in a zero byte.
        purpose: who seals, as ``files``; what was sealed for another purpose does not open.
    """
    padded = content + b"\0" * (-len(content) % _PADDED_TO)
    # The tag is a function of the content, and the only input of the key stream: what is sealed twice looks
    # the same, and nothing else can be told (a synthetic initialization vector, as in RFC 5297).
    tag = _tag(database_id, padded, purpose)
    return tag + _mixed(database_id, padded, tag, purpose)


def unseal(database_id: bytes, sealed: bytes, purpose: str) -> bytes | None:
    """Returns what was sealed; None when nothing was sealed to these bytes.

    Args:
        database_id: as for ``seal``.
        sealed: what ``seal`` returned.
        purpose: as for ``seal``.
    """
    tag = sealed[:_TAG_BYTES]
    padded = _mixed(database_id, sealed[_TAG_BYTES:], tag, purpose)
    return padded.rstrip(b"\0") if _tag(database_id, padded, purpose) == tag else None


def _tag(database_id: bytes, padded: bytes, purpose: str) -> bytes:
    context = f"svc {purpose} 2026 tag of a sealed cursor"
    return blake3(database_id + padded, derive_key_context=context).digest(_TAG_BYTES)


def _mixed(database_id: bytes, text: bytes, tag: bytes, purpose: str) -> bytes:
    context = f"svc {purpose} 2026 text of a sealed cursor"
    stream = blake3(database_id + tag, derive_key_context=context).digest(len(text))
    # As two long numbers: byte by byte it takes fifteen times as long.
    return (int.from_bytes(text) ^ int.from_bytes(stream)).to_bytes(len(text))
