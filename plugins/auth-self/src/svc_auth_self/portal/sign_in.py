"""Signing in at the portal by a key: what ``/auth/token`` and its like do, for a browser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from svc_portal.api import Field, Message, Session, SignIn

from svc.errors import AuthRequired
from svc_auth_self.exchanging import end_by_access, renew_access
from svc_auth_self.mode import TokenAuthMode
from svc_auth_self.models import RefreshToken, SignedIn, TokenRequest
from svc_auth_self.operations import end_sign_in, exchange_key, refresh_tokens
from svc_auth_self.settings import refresh_seconds

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["KeySignIn"]

_PREFIX = "rt_"


class KeySignIn(SignIn):
    """By an API key, in every mode that has keys and tokens of the database."""

    name: ClassVar[str] = "key"
    title: ClassVar[str] = "Sign in"
    fields: ClassVar[tuple[Field, ...]] = (Field("key", "Key", "password", "current-password"),)
    hint: ClassVar[str] = "An API key; it begins with svc_k_."

    def is_offered(self, request: PortalRequest) -> bool:
        """Where the auth mode has our keys."""
        return isinstance(request.context.auth_mode, TokenAuthMode)

    def sign_in(self, request: PortalRequest, values: Mapping[str, str]) -> Session | Message:
        """Exchanges the key, within the limits of all who do."""
        return _session(request, request.call(exchange_key, TokenRequest(values["key"].strip())))

    def renew(self, request: PortalRequest, renewal: str) -> Session | None:
        """Refreshes it. Who comes second with one token, as a second tab does, gets an access token alone."""
        if not renewal.startswith(_PREFIX):
            return None
        try:
            return _session(request, request.call(refresh_tokens, RefreshToken(renewal)))
        except AuthRequired:
            return _session(request, renew_access(request.context, renewal))

    def end(self, request: PortalRequest, renewal: str) -> bool:
        """Ends the chain of the token, whichever of the two it is, with the access tokens of it."""
        if renewal.startswith(_PREFIX):
            request.call(end_sign_in, RefreshToken(renewal))
        else:
            end_by_access(request.context, renewal)
        return True


def _session(request: PortalRequest, signed_in: SignedIn) -> Session:
    return Session(
        token=signed_in.token,
        lifetime_s=signed_in.expires_in,
        renewal=signed_in.refresh_token,
        renewal_s=refresh_seconds(request.context.database),
    )
