"""Signing in: a key or an account becomes an access token, and a refresh token where there shall be one."""

from __future__ import annotations

from svc.errors import AuthRequired, Conflict
from svc.plugin import Call
from svc_auth_self.accounts import Account, Accounts, DatabaseAccounts
from svc_auth_self.mode import KeyMatch, TokenAuthMode
from svc_auth_self.models import SignedIn
from svc_auth_self.refresh import begin_chain
from svc_auth_self.settings import settings_of
from svc_auth_self.sign_in_log import log_sign_in

__all__ = ["accounts_of", "require_active", "sign_in", "token_mode"]


def token_mode(call: Call) -> TokenAuthMode:
    """Returns the auth mode of the server, which has keys and tokens of ours.

    Raises:
        Conflict: it is another one.
    """
    mode = call.auth_mode
    if not isinstance(mode, TokenAuthMode):
        raise Conflict(
            f"This server runs with --auth {mode.name}, which has no keys and no tokens of this database; "
            "start it with --auth self-contained to use them."
        )
    return mode


def accounts_of(call: Call) -> Accounts:
    """Returns who may have keys: as the server's auth mode knows them, in a file its users.

    Raises:
        Conflict: the server's auth mode has no keys of this database.
    """
    return token_mode(call).accounts if call.is_served else DatabaseAccounts(call.database)


def sign_in(call: Call, match: KeyMatch | Account, *, refresh: bool) -> SignedIn:
    """Returns the tokens for a key or an account that was found to be good. May commit.

    Raises:
        Conflict: the server's auth mode is another one.
        AuthRequired: the account, or the owner of the key, may not sign in.
    """
    mode = token_mode(call)
    settings = settings_of(call.database)
    key_id = match.key_id if isinstance(match, KeyMatch) else None
    if match.user_id is not None:
        require_active(mode, match.user_id)
    chain_id = refresh_token = None
    if refresh:
        with call.database.transaction(actor=match.user_id, message="sign in") as transaction:
            chain_id, refresh_token = begin_chain(
                call.database,
                transaction,
                user_id=match.user_id,
                key_id=key_id,
                days=settings.refresh_days,
            )
    token, expires_in = mode.write_token(match, settings.jwt_expiry, chain_id)
    log_sign_in(call, "API key" if key_id is not None else "link", user_id=match.user_id, key_id=key_id)
    return SignedIn(token=token, expires_in=expires_in, refresh_token=refresh_token)


def require_active(mode: TokenAuthMode, user_id: str) -> None:
    """Refuses an account that may not sign in, with the words for a key that is not good."""
    account = mode.accounts.find(user_id)
    if account is None or not account.is_active:
        raise AuthRequired("The key is not valid.")
