"""The operations on tokens and API keys.

Everyone who is signed in has keys of their own. A scoped key makes no new ones; it shows and revokes itself
only, so that what narrows a key can't be got around by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import AuthRequired, Conflict, NotFound, RateLimited
from svc.plugin import Weight, operation, public, requires_identity, requires_root
from svc_auth_self.models import (
    ApiKeyPage,
    KeyQuery,
    NewApiKey,
    NewKey,
    NewSigningKey,
    RefreshToken,
    RevokedKey,
    SignedIn,
    SignedOut,
    SignIn,
    SigningKey,
    SignInList,
    SignInQuery,
    TokenRequest,
)

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = [
    "create_any_key",
    "create_key",
    "end_sign_in",
    "exchange_key",
    "list_all_keys",
    "list_keys",
    "list_sign_ins",
    "refresh_tokens",
    "revoke_any_key",
    "revoke_key",
    "rotate_signing_key",
]

NEXT_KEY = {"X-Svc-Next-Key": "next_cursor"}
MOST_OF_SIGN_IN = 16 * 1024


@operation(
    "POST",
    "/auth/token",
    public,
    errors=(AuthRequired, Conflict, RateLimited),
    weight=Weight.SMALL,
    cache="no-store",
    maximum_body=MOST_OF_SIGN_IN,
)
def exchange_key(call: Call, body: TokenRequest) -> SignedIn:
    """Exchanges an API key for an access token and a refresh token."""
    from svc_auth_self import exchanging

    return exchanging.exchange_key(call, body.api_key.strip(), refresh=body.refresh)


@operation(
    "POST",
    "/auth/refresh",
    public,
    errors=(AuthRequired, Conflict, RateLimited),
    weight=Weight.SMALL,
    cache="no-store",
    maximum_body=MOST_OF_SIGN_IN,
)
def refresh_tokens(call: Call, body: RefreshToken) -> SignedIn:
    """Spends a refresh token for the next access token and refresh token."""
    from svc_auth_self import exchanging

    return exchanging.refresh(call, body.refresh_token)


@operation(
    "POST",
    "/auth/logout",
    public,
    errors=(AuthRequired, Conflict),
    weight=Weight.SMALL,
    maximum_body=MOST_OF_SIGN_IN,
)
def end_sign_in(call: Call, body: RefreshToken) -> SignedOut:
    """Ends the sign-in of a refresh token, with its access tokens."""
    from svc_auth_self import exchanging

    exchanging.end(call, body.refresh_token)
    return SignedOut(True)


@operation(
    "POST",
    "/auth/keys",
    requires_identity,
    older=("/api-keys",),
    status=201,
    errors=(Conflict, NotFound),
    weight=Weight.SMALL,
    cache="no-store",
)
def create_key(call: Call, body: NewKey) -> NewApiKey:
    """Makes a key, and shows its text this once."""
    from svc_auth_self import managing

    return managing.create_key(call, body)


@operation(
    "GET",
    "/auth/keys",
    requires_identity,
    older=("/api-keys",),
    errors=(Conflict,),
    weight=Weight.DEAR,
    headers=NEXT_KEY,
)
def list_keys(call: Call, query: KeyQuery = KeyQuery()) -> ApiKeyPage:
    """Lists the caller's keys, for root everybody's, oldest first."""
    from svc_auth_self import managing

    return managing.list_keys(call, query)


@operation(
    "DELETE",
    "/auth/keys/{key_id}",
    requires_identity,
    older=("/api-keys/{key_id}",),
    errors=(Conflict, NotFound),
    weight=Weight.SMALL,
)
def revoke_key(call: Call, key_id: str) -> RevokedKey:
    """Revokes a key: its tokens end with the next request."""
    from svc_auth_self import managing

    return managing.revoke_key(call, key_id)


@operation(
    "POST",
    "/auth/keys/admin",
    requires_root,
    older=("/admin/api-keys",),
    status=201,
    errors=(Conflict, NotFound),
    weight=Weight.SMALL,
    cache="no-store",
)
def create_any_key(call: Call, body: NewKey) -> NewApiKey:
    """Makes a key for any user."""
    from svc_auth_self import managing

    return managing.create_key(call, body)


@operation(
    "GET",
    "/auth/keys/admin",
    requires_root,
    older=("/admin/api-keys",),
    errors=(Conflict,),
    weight=Weight.DEAR,
    headers=NEXT_KEY,
)
def list_all_keys(call: Call, query: KeyQuery = KeyQuery()) -> ApiKeyPage:
    """Lists everybody's keys, oldest first."""
    from svc_auth_self import managing

    return managing.list_keys(call, query)


@operation(
    "DELETE",
    "/auth/keys/admin/{key_id}",
    requires_root,
    older=("/admin/api-keys/{key_id}",),
    errors=(Conflict, NotFound),
    weight=Weight.SMALL,
)
def revoke_any_key(call: Call, key_id: str) -> RevokedKey:
    """Revokes a key of any user."""
    from svc_auth_self import managing

    return managing.revoke_key(call, key_id)


@operation("POST", "/auth/signing-key", requires_root, status=201, errors=(Conflict,), weight=Weight.SMALL)
def rotate_signing_key(call: Call, body: NewSigningKey = NewSigningKey()) -> SigningKey:
    """Signs tokens with a new key. Those of the old one go on, but with ``end_tokens``."""
    from svc_auth_self.sign_in import accounts_of
    from svc_auth_self.signing import rotate_now

    accounts_of(call)
    lifetime, actor = call.configuration.jwt_expiry, call.identity.user_id
    return SigningKey(rotate_now(call.database, lifetime, end_tokens=body.end_tokens, actor=actor))


@operation("GET", "/auth/sign-ins", requires_root, errors=(Conflict,), weight=Weight.DEAR, cache="no-store")
def list_sign_ins(call: Call, query: SignInQuery = SignInQuery()) -> SignInList:
    """Lists who has signed in of late, and who was refused, the newest first."""
    from msgspec.structs import asdict

    from svc_auth_self.sign_in import accounts_of
    from svc_auth_self.sign_in_list import read_sign_ins

    accounts = accounts_of(call)
    names: dict[str, str | None] = {}
    lines = read_sign_ins(call.database, limit=query.limit, is_refused=query.refused)
    for user_id in {line.user_id for line in lines if line.user_id is not None}:
        account = accounts.find(user_id)
        names[user_id] = None if account is None else account.username
    return SignInList([SignIn(**asdict(line), username=names.get(line.user_id or "")) for line in lines])
