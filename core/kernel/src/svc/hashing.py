"""BLAKE3 identities of objects.

A chunk's identity is the plain BLAKE3 of its bytes, so that anyone can compute it. Every other kind is hashed
under a derive-key context of its own, so that no object can pass for one of another kind. System objects have
contexts of their own too, and so never share a hash with anything that a file route can name.
"""

from __future__ import annotations

from enum import IntEnum

from blake3 import blake3

__all__ = ["HASH_SIZE", "Hash", "ObjectKind", "content_hasher", "hash_content", "hash_object", "parse_hash"]

Hash = bytes
"""A BLAKE3-256 identity: 32 bytes inside the program, 64 lower-case hex digits at its edge."""

HASH_SIZE = 32


class ObjectKind(IntEnum):
    """What a record of the log holds. The numbers are part of the file format."""

    CHUNK = 1
    FILE_RECORD = 2
    NODE = 3
    DELETION = 4
    COMMIT = 5
    VOID = 6


_CONTEXTS: dict[tuple[ObjectKind, bool], str | None] = {
    (ObjectKind.CHUNK, False): None,
    (ObjectKind.CHUNK, True): "svc 2026 system chunk",
    (ObjectKind.FILE_RECORD, False): "svc 2026 file record",
    (ObjectKind.FILE_RECORD, True): "svc 2026 system file record",
    (ObjectKind.NODE, False): "svc 2026 directory node",
    (ObjectKind.NODE, True): "svc 2026 system directory node",
    (ObjectKind.DELETION, False): "svc 2026 deletion",
    (ObjectKind.DELETION, True): "svc 2026 system deletion",
    (ObjectKind.COMMIT, False): "svc 2026 commit",
    (ObjectKind.COMMIT, True): "svc 2026 commit",
}


def hash_object(kind: ObjectKind, content: bytes | bytearray | memoryview, system: bool = False) -> Hash:
    """Returns the identity of an object's uncompressed content.

    Args:
        kind: the object's kind; it selects the derive-key context (BLAKE3 specification, 2.3).
        content: the uncompressed content.
        system: whether the object belongs to the system tree.
    """
    context = _CONTEXTS[kind, system]
    if context is None:
        return blake3(content).digest()
    return blake3(content, derive_key_context=context).digest()


def hash_content(content: bytes | bytearray | memoryview) -> Hash:
    """Returns the identity of a whole content, which is that of its only chunk too (plain BLAKE3)."""
    return blake3(content).digest()


def content_hasher() -> blake3:
    """Returns an incremental hasher of a whole file's content (plain BLAKE3)."""
    return blake3()


def parse_hash(text: str) -> Hash | None:
    """Returns the hash that 64 hex digits spell, or None when ``text`` is not that."""
    if len(text) != HASH_SIZE * 2:
        return None
    try:
        hash = bytes.fromhex(text)
    except ValueError:
        return None
    return hash if len(hash) == HASH_SIZE else None  # spaces between digits are passed over
