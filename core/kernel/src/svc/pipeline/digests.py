"""Digests that clients send with a body: ``Content-MD5``, ``Content-Digest``, ``Repr-Digest`` (RFC 9530).

A body is stored as it came, so the digest of the content is that of the representation.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Any

from svc.errors import InvalidInput

__all__ = ["BodyDigests"]

_FIELDS = (
    ("HTTP_CONTENT_MD5", "Content-MD5"),
    ("HTTP_CONTENT_DIGEST", "Content-Digest"),
    ("HTTP_REPR_DIGEST", "Repr-Digest"),
)


def _md5() -> Any:
    """What ``Content-MD5`` asks for: it finds bytes that were lost on the way, and proves nothing."""
    return hashlib.md5(usedforsecurity=False)


_ALGORITHMS: dict[str, Callable[[], Any]] = {
    "sha-512": hashlib.sha512,
    "sha-256": hashlib.sha256,
    "md5": _md5,
}
"""What is checked; a field may name others, which RFC 9530 lets a recipient ignore."""
_MEMBER = re.compile(r"[ \t]*([a-z*][a-z0-9_.*\-]*)=:([A-Za-z0-9+/=]*):[ \t]*")


class BodyDigests:
    """What the bytes of a body must add up to."""

    __slots__ = ("_expected",)

    def __init__(self, environ: dict[str, Any]) -> None:
        self._expected = [
            (label, algorithm(), digest)
            for key, label in _FIELDS
            if key in environ
            for algorithm, digest in _members(label, environ[key])
        ]

    @classmethod
    def of(cls, environ: dict[str, Any]) -> BodyDigests | None:
        """Returns what a request says of its body, None where it says nothing; InvalidInput for rubbish."""
        if not any(key in environ for key, _ in _FIELDS):
            return None
        return cls(environ)

    def update(self, piece: bytes | memoryview) -> None:
        """Counts the next bytes of the body in."""
        for _, hasher, _ in self._expected:
            hasher.update(piece)

    def check(self) -> None:
        """Raises InvalidInput where the bytes so far are not those that were announced."""
        for label, hasher, digest in self._expected:
            if not hmac.compare_digest(hasher.digest(), digest):
                raise InvalidInput(f"The body does not have the digest that {label} says.", field=label)


def _members(label: str, value: str) -> list[tuple[Callable[[], Any], bytes]]:
    if label == "Content-MD5":
        return [(_md5, _digest(label, _md5, value.strip()))]
    found = []
    for text in value.split(","):
        member = _MEMBER.fullmatch(text)
        if member is None:
            raise InvalidInput(f"{label} is a list such as sha-256=:BASE64:.", field=label)
        algorithm = _ALGORITHMS.get(member[1])
        if algorithm is not None:
            found.append((algorithm, _digest(label, algorithm, member[2])))
    return found


def _digest(label: str, algorithm: Callable[[], Any], text: str) -> bytes:
    try:
        digest = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) != algorithm().digest_size:
        raise InvalidInput(f"{label} does not hold a digest in base64.", field=label)
    return digest
