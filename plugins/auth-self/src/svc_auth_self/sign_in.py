"""Signing in: a key or an account becomes an access token, and a refresh token where there shall be one."""

from __future__ import annotations

from collections.abc import Callable

from svc.errors import AuthRequired, Conflict
from svc.plugin import Confidential, RequestContext
from svc_auth_self.accounts import Account
from svc_auth_self.mode import KeyMatch, TokenAuthMode
from svc_auth_self.refresh import begin_chain, refresh_chain, require_chain
from svc_auth_self.settings import settings_of
from svc_auth_self.sign_in_log import log_sign_in

__all__ = ["SignedIn", "refresh", "sign_in", "token_mode"]


class SignedIn(Confidential, frozen=True, kw_only=True):
    """What somebody gets who has signed in. Its representation shows no token.

    Attributes:
        token: the access token.
        expires_in: seconds for which it is good.
        refresh_token: gets the next one; None where none was asked for.
    """

    shown = ("expires_in",)

    token: str
    expires_in: int
    refresh_token: str | None = None


def token_mode(context: RequestContext) -> TokenAuthMode:
    """Returns the auth mode of the server, which has keys and tokens of ours.

    Raises:
        Conflict: it is another one.
    """
    mode = context.auth_mode
    if not isinstance(mode, TokenAuthMode):
        raise Conflict(
            f"This server runs with --auth {mode.name}, which has no keys and no tokens of this database; "
            "start it with --auth self-contained to use them."
        )
    return mode


def sign_in(context: RequestContext, match: KeyMatch | Account, *, refresh: bool) -> SignedIn:
    """Returns the tokens for a key or an account that was found to be good. May commit.

    Raises:
        Conflict: the server's auth mode is another one.
        AuthRequired: the account, or the owner of the key, may not sign in.
    """
    mode = token_mode(context)
    settings = settings_of(context.database)
    key_id = match.key_id if isinstance(match, KeyMatch) else None
    if match.user_id is not None:
        _require_active(mode, match.user_id)
    chain_id = refresh_token = None
    if refresh:
        with context.database.transaction(actor=match.user_id, message="sign in") as transaction:
            chain_id, refresh_token = begin_chain(
                context.database,
                transaction,
                user_id=match.user_id,
                key_id=key_id,
                days=settings.refresh_days,
            )
    token, expires_in = mode.write_token(match, settings.jwt_expiry, chain_id)
    log_sign_in(context, "API key" if key_id is not None else "link", user_id=match.user_id, key_id=key_id)
    return SignedIn(token=token, expires_in=expires_in, refresh_token=refresh_token)


def refresh(context: RequestContext, refresh_token: str, count: Callable[[str], None]) -> SignedIn:
    """Spends a refresh token and returns the next tokens. Commits.

    ``count`` is called with the id of the chain of a token that is good, before it is spent; it may raise.

    Raises Conflict where the server's auth mode is another one, and AuthRequired where the token is not good,
    or its key or user is not any more.
    """
    mode = token_mode(context)
    settings = settings_of(context.database)
    presented = require_chain(context.database, refresh_token, settings.refresh_reuse_s)
    count(presented.chain_id)
    chain = presented.chain
    match: KeyMatch | Account | None
    if chain.key_id is not None:
        match = mode.find_match(chain.key_id)
    else:
        match = mode.accounts.find(chain.user_id or "")
    if match is None or match.user_id != chain.user_id:
        raise AuthRequired("The refresh token is not valid, was used already, or has expired.")
    if match.user_id is not None:
        _require_active(mode, match.user_id)
    # Before the old one is spent: what fails now can be tried again.
    token, expires_in = mode.write_token(match, settings.jwt_expiry, presented.chain_id)
    following = refresh_chain(
        context.database, presented, days=settings.refresh_days, reuse_s=settings.refresh_reuse_s
    )
    return SignedIn(token=token, expires_in=expires_in, refresh_token=following)


def _require_active(mode: TokenAuthMode, user_id: str) -> None:
    account = mode.accounts.find(user_id)
    if account is None or not account.is_active:
        raise AuthRequired("The key is not valid.")
