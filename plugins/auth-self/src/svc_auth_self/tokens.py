"""Access tokens: JWTs signed by Ed25519, and nothing else.

The algorithm is pinned: what the header of a token says about it decides nothing but a refusal.
"""

from __future__ import annotations

import base64
import re
import time
from typing import TYPE_CHECKING, Any

import msgspec

from svc.errors import AuthRequired
from svc_auth_self.signing import SigningKeys

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = ["ISSUER", "SHARE_SUBJECT", "Claims", "TokenReader", "TokenWriter", "key_of_scope"]

ISSUER = "svc"
SHARE_SUBJECT = "share"
USER_SCOPE = "user"
MOST_BYTES = 8 * 1024
_ALGORITHM = "EdDSA"
_TEXT = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
_CHAIN_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_REQUIRED = ("iss", "sub", "iat", "exp", "scope")
_CLOCK_SKEW_S = 5
_MOST_CHECKED = 20_000
_KEY_SCOPE = "key:"

NOT_VALID = "The token is not valid, or has expired."


class Claims(msgspec.Struct, frozen=True):
    """What a token says whose signature holds.

    Attributes:
        subject: user id, or ``share`` for the bearer of a share key.
        key_id: the key that it was given for; None when no key was used.
        chain_id: the chain of refresh tokens that it belongs to; None when it belongs to none.
    """

    subject: str
    key_id: str | None
    expires_s: int
    chain_id: str | None = None


class _Header(msgspec.Struct):
    """What is looked at of a header before the signature is: which key is to check it."""

    alg: str
    kid: str


class TokenWriter:
    """Signs tokens with the active key of a database."""

    def __init__(self, keys: SigningKeys) -> None:
        self._keys = keys

    def write(
        self,
        subject: str,
        key_id: str | None,
        lifetime_s: int,
        ends_ms: int | None,
        chain_id: str | None = None,
    ) -> tuple[str, int]:
        """Returns a token and the seconds for which it is good. May commit, when there is no signing key yet.

        ``subject`` is a user id, or ``share``. The token is good for ``lifetime_s`` at most, and ends no
        later than the key, at ``ends_ms``. It belongs to the chain of refresh tokens, and ends with it.
        """
        import jwt

        kid, private = self._keys.active(lifetime_s)
        now = int(time.time())
        expires = now + lifetime_s if ends_ms is None else min(now + lifetime_s, ends_ms // 1_000)
        payload = {
            "iss": ISSUER,
            "sub": subject,
            "iat": now,
            "exp": expires,
            "scope": USER_SCOPE if key_id is None else _KEY_SCOPE + key_id,
        }
        if chain_id is not None:
            payload["sid"] = chain_id
        token = jwt.encode(payload, private, algorithm=_ALGORITHM, headers={"kid": kid})
        return token, max(0, expires - now)


class TokenReader:
    """Checks tokens: one Ed25519 check each, whatever the number of keys and users.

    What was checked is kept while its signing key is what it was, so that a change of users or grants, after
    which every identity is made anew, costs no check.
    """

    def __init__(self, keys: SigningKeys) -> None:
        self._keys = keys
        self._checked: dict[str, tuple[str, Ed25519PublicKey, Claims]] = {}

    def read(self, token: str) -> Claims:
        """Returns what a token says; the caller looks whether it has expired.

        Raises AuthRequired where it is not one that this database has signed, or it is not good now.
        """
        known = self._checked.get(token)
        if known is not None and self._keys.public(known[0]) is known[1]:
            return known[2]
        kid, public, found = self._decode(token)
        claims = _claims_of(found)
        if len(self._checked) >= _MOST_CHECKED:
            self._checked.clear()
        self._checked[token] = kid, public, claims
        return claims

    def _decode(self, token: str) -> tuple[str, Ed25519PublicKey, dict[str, Any]]:
        import jwt

        # Not a character that a token can't have: base64 as the library reads it passes over padding and
        # much else, so that one token would be good in any number of spellings.
        if len(token) > MOST_BYTES or _TEXT.fullmatch(token) is None:
            raise AuthRequired(NOT_VALID)
        try:
            # The library would take the whole token apart for that, and again to check it.
            header = msgspec.json.decode(
                base64.urlsafe_b64decode(token.partition(".")[0] + "=="), type=_Header
            )
            public = self._keys.public(header.kid) if header.alg == _ALGORITHM else None
            if public is None:
                raise AuthRequired(NOT_VALID)
            claims: dict[str, Any] = jwt.decode(
                token,
                public,
                algorithms=[_ALGORITHM],
                issuer=ISSUER,
                leeway=_CLOCK_SKEW_S,
                options={"require": list(_REQUIRED), "strict_aud": True, "enforce_minimum_key_length": True},
            )
        except (
            msgspec.DecodeError,
            jwt.InvalidTokenError,
            jwt.InvalidKeyError,
            ValueError,
            TypeError,
            RecursionError,
        ):
            # The reason would help nobody who has a right to it, and whoever tries out tokens.
            raise AuthRequired(NOT_VALID) from None
        return header.kid, public, claims


def _claims_of(found: dict[str, Any]) -> Claims:
    subject, scope, expires = found.get("sub"), found.get("scope"), found.get("exp")
    if not isinstance(subject, str) or not isinstance(scope, str) or not isinstance(expires, int):
        raise AuthRequired(NOT_VALID)
    chain_id = found.get("sid")
    if chain_id is not None and (not isinstance(chain_id, str) or _CHAIN_ID.fullmatch(chain_id) is None):
        raise AuthRequired(NOT_VALID)
    return Claims(subject, key_of_scope(scope), expires, chain_id)


def key_of_scope(scope: str) -> str | None:
    """Returns the id of the key that a scope names; None for a user's own token.

    Raises AuthRequired for a scope that this program does not know: a later one's, which may mean less.
    """
    if scope == USER_SCOPE:
        return None
    if scope.startswith(_KEY_SCOPE) and len(scope) > len(_KEY_SCOPE):
        return scope[len(_KEY_SCOPE) :]
    raise AuthRequired(NOT_VALID)
