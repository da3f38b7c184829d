"""The two documents of an issuer: its discovery document, and its set of public keys (RFC 7517).

Both come from another machine: their size, their time and their form are bounded, no redirect is followed,
and only what is fetched over TLS is believed, except on loopback.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import jwt
import msgspec
import urllib3
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from msgspec import Struct

__all__ = ["FetchFailed", "SigningKey", "fetch_keys", "is_trusted_url"]

T = TypeVar("T")

_MAXIMUM_BYTES = 1_048_576
_MAXIMUM_KEYS = 100
_SHORTEST_RSA = 2048
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_ALGORITHMS = {
    ("OKP", "Ed25519"): ("EdDSA",),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("RSA", None): ("PS256", "PS384", "PS512", "RS256", "RS384", "RS512"),
}
"""What a key can check, by its type and curve. A secret key (``oct``) has no line here, so it is none."""


class FetchFailed(Exception):
    """A document did not come, or is not of the required form."""


class SigningKey(Struct, frozen=True):
    """A public key of the issuer.

    Attributes:
        jwk: the key as the issuer gives it.
        algorithms: what signatures it checks.
        public: the key as the library takes it.
    """

    jwk: Mapping[str, Any]
    algorithms: tuple[str, ...]
    public: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SigningKey) and self.jwk == other.jwk

    __hash__ = None  # type: ignore[assignment]


class _Discovery(Struct):
    issuer: str
    jwks_uri: str


class _KeySet(Struct):
    keys: list[dict[str, Any]]


def is_trusted_url(url: str) -> bool:
    """Whether a document from this URL is believed: ``https``, or ``http`` on a loopback address."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    if not host or parts.username is not None or parts.query or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)


def fetch_keys(issuer: str, timeout_s: float) -> Mapping[str | None, SigningKey]:
    """Returns the keys of an issuer by their ids. Blocks.

    Args:
        issuer: its URL; the discovery document below it names the place of the keys.
        timeout_s: how long each of the two answers may take.

    Raises:
        FetchFailed: a document did not come, or is not of the required form.
    """
    with urllib3.PoolManager(retries=False) as pool:
        place = issuer.rstrip("/") + "/.well-known/openid-configuration"
        discovery = _document(_get(pool, place, timeout_s), _Discovery)
        if discovery.issuer != issuer:
            raise FetchFailed("the discovery document is of another issuer")
        if not is_trusted_url(discovery.jwks_uri):
            raise FetchFailed("the keys are not at an https URL")
        key_set = _document(_get(pool, discovery.jwks_uri, timeout_s), _KeySet)
    usable = [key for jwk in key_set.keys[:_MAXIMUM_KEYS] if (key := _key(jwk)) is not None]
    if not usable:
        raise FetchFailed("there is no key for signatures in the set")
    keys = {_text(key.jwk.get("kid")): key for key in usable}
    if len(usable) == 1:
        keys[None] = usable[0]  # tokens need not name the only one
    return keys


def _get(pool: urllib3.PoolManager, url: str, timeout_s: float) -> bytes:
    deadline = time.monotonic() + timeout_s
    body = bytearray()
    try:
        with pool.request(
            "GET", url, redirect=False, preload_content=False, timeout=urllib3.Timeout(total=timeout_s)
        ) as answer:
            if answer.status != 200:
                raise FetchFailed(f"the answer was {answer.status}")
            while piece := answer.read1(65_536):
                body += piece
                if len(body) > _MAXIMUM_BYTES:
                    raise FetchFailed("the answer is too long")
                if time.monotonic() > deadline:
                    raise FetchFailed("the answer takes too long")
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise FetchFailed(type(error).__name__) from None
    return bytes(body)


def _document(body: bytes, form: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise FetchFailed("a document is not of the required form") from None


def _key(jwk: dict[str, Any]) -> SigningKey | None:
    """The key that a JWK describes; None for one that checks no signature, or that nobody should trust."""
    if jwk.get("use", "sig") != "sig":
        return None
    kind, curve = _text(jwk.get("kty")), _text(jwk.get("crv"))
    possible = _ALGORITHMS.get((kind or "", curve), ())
    named = jwk.get("alg")
    algorithms = possible if named is None else tuple(name for name in possible if name == named)
    if not algorithms:
        return None
    try:
        public = jwt.PyJWK(jwk, algorithm=algorithms[0]).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    if hasattr(public, "sign") or (isinstance(public, RSAPublicKey) and public.key_size < _SHORTEST_RSA):
        return None
    return SigningKey(jwk, algorithms, public)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
