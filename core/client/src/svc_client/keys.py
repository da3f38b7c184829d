"""API keys, and signing in with one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from svc.confidential import Confidential
from svc_client.credentials import SignIn
from svc_client.models import ApiKey, NewApiKey, Revoked
from svc_client.transport import Transport

__all__ = ["Keys"]

_PAGE = 1_000


class _SignedIn(Confidential, frozen=True):
    shown = ("expires_in",)

    token: str
    expires_in: float
    refresh_token: str | None = None


class _Rotated(msgspec.Struct):
    kid: str


class Keys:
    """``/auth``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def sign_in(self, api_key: str) -> SignIn:
        """Exchanges an API key for an access token and a refresh token.

        Raises:
            AuthRequired: the server does not take the key.
            RateLimited: too many logins have failed.
        """
        # The token that this client may have is not shown: a server refuses one that has ended.
        answer = self._transport.json(
            "POST", "/auth/token", _SignedIn, value={"api_key": api_key}, anonymous=True
        )
        return SignIn(
            token=answer.token,
            expires_at=time.time() + answer.expires_in,
            refresh_token=answer.refresh_token,
        )

    def sign_out(self, refresh_token: str) -> None:
        """Ends a sign-in by its refresh token."""
        self._transport.json(
            "POST", "/auth/logout", dict[str, Any], value={"refresh_token": refresh_token}, anonymous=True
        )

    def create(
        self,
        *,
        label: str | None = None,
        expires_in_days: int | None = None,
        rules: Sequence[Mapping[str, str]] = (),
        user_id: str | None = None,
    ) -> NewApiKey:
        """Makes an API key; the answer alone has its text.

        Args:
            label: what people call it.
            expires_in_days: 1 to 3650; None: 730.
            rules: objects with one member, a path glob with its flags; none: no restriction.
            user_id: the owner; None: the caller. For others it is root's.
        """
        value: dict[str, Any] = {"rules": list(rules)}
        given = {"label": label, "expires_in_days": expires_in_days, "user_id": user_id}
        value |= {name: member for name, member in given.items() if member is not None}
        return self._transport.json("POST", "/auth/keys", NewApiKey, value=value)

    def list(self, *, user_id: str | None = None) -> Iterator[ApiKey]:
        """Yields the caller's keys, for root everybody's or a user's, oldest first."""
        query = {"limit": str(_PAGE)}
        if user_id is not None:
            query["user_id"] = user_id
        while True:
            page = self._transport.json("GET", "/auth/keys", list[ApiKey], query=query)
            yield from page
            if len(page) < _PAGE:
                return
            query["after"] = page[-1].key_id

    def revoke(self, key_id: str) -> None:
        """Revokes a key; its tokens end with the next request."""
        self._transport.json("DELETE", f"/auth/keys/{quote(key_id, safe='')}", Revoked)

    def rotate_signing_key(self, *, end_tokens: bool = False) -> str:
        """Signs tokens with a new key from now on; returns what tokens call it. Root's.

        Args:
            end_tokens: end every access token at once; refresh tokens go on.
        """
        value = {"end_tokens": end_tokens}
        return self._transport.json("POST", "/auth/signing-key", _Rotated, value=value).kid
