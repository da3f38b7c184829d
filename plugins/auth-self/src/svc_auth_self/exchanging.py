"""Keys and refresh tokens become tokens, within limits that all workers count together.

Failed exchanges are counted by address and by key, good ones by key. Only wrong keys are refused for
failures: many people may come from one address, and nobody guesses 256 bits. Failed refreshes are not
counted: of many requests with one token all but one fail, and nobody guesses 512 bits.
"""

from __future__ import annotations

import math

from svc.errors import AuthRequired, RateLimited
from svc.plugin import Call
from svc_auth_self.accounts import Account
from svc_auth_self.addresses import client_address
from svc_auth_self.keys import find_key, key_id_of
from svc_auth_self.limiter import RateLimiter, limiter_of
from svc_auth_self.mode import KeyMatch, TokenAuthMode
from svc_auth_self.models import SignedIn
from svc_auth_self.records import now_ms
from svc_auth_self.refresh import (
    NOT_VALID,
    Chain,
    end_chain,
    refresh_chain,
    require_chain,
    require_chain_of_spent,
)
from svc_auth_self.settings import settings_of
from svc_auth_self.sign_in import require_active, sign_in, token_mode
from svc_auth_self.sign_in_log import log_refused_sign_in

__all__ = ["end", "end_by_access", "exchange_key", "refresh", "renew_access"]

_MINUTE = 60
_KEY_NOT_VALID = "The API key is not valid: it is unknown, was revoked, or has expired."


def exchange_key(call: Call, key: str, *, refresh: bool) -> SignedIn:
    """Returns tokens for the text of a key. May commit.

    Raises:
        AuthRequired: the key is not good; every reason reads the same.
        RateLimited: it is not good, and too many have failed from this address or with its id; or it is good,
            and exchanged too often.
        Conflict: the server's auth mode is another one.
    """
    mode = token_mode(call)
    match = mode.match_key(key)
    try:
        if match is None:
            raise AuthRequired(_KEY_NOT_VALID)
        _count_good(
            call, f"good {match.key_id}", "API key", "the key signs in", "This key is exchanged", match.key_id
        )
        return sign_in(call, match, refresh=refresh)
    except AuthRequired:
        key_id = key_id_of(key)
        _count_failed_from_here(call)
        reason, known = _why_refused(call, mode, key, key_id)
        log_refused_sign_in(call, "API key", reason, key_id=known)
        if key_id is not None:
            _count_failed_with(call, key_id)
        raise AuthRequired(_KEY_NOT_VALID) from None


def refresh(call: Call, refresh_token: str) -> SignedIn:
    """Spends a refresh token and returns the next tokens. Commits.

    Raises:
        AuthRequired: the token is not good, or its key or user is not any more.
        RateLimited: the sign-in is refreshed too often.
        Conflict: the server's auth mode is another one.
    """
    mode, settings = token_mode(call), call.configuration
    presented = require_chain(call.database, refresh_token, settings.refresh_reuse_s)
    _count_good(
        call, f"chain {presented.chain_id}", "refresh token", "it is refreshed", "This sign-in is refreshed"
    )
    match = _require_match(mode, presented.chain)
    # Before the old one is spent: what fails now can be tried again.
    token, expires_in = mode.write_token(match, settings.jwt_expiry, presented.chain_id)
    following = refresh_chain(
        call.database, presented, days=settings.refresh_days, reuse_s=settings.refresh_reuse_s
    )
    return SignedIn(token=token, expires_in=expires_in, refresh_token=following)


def renew_access(call: Call, refresh_token: str) -> SignedIn:
    """Returns an access token for a refresh token that was spent a moment ago, by another tab of a browser.

    No refresh token comes with it: the browser has got one, or will. It ends with the sign-in as others do.

    Raises:
        AuthRequired: the token was not spent within the setting ``refresh_reuse_s``, or its key or user is
            not good any more.
        Conflict: the server's auth mode is another one.
    """
    mode, settings = token_mode(call), settings_of(call.database)
    chain_id, chain = require_chain_of_spent(call.database, refresh_token, settings.refresh_reuse_s)
    token, expires_in = mode.write_token(_require_match(mode, chain), settings.jwt_expiry, chain_id)
    return SignedIn(token=token, expires_in=expires_in)


def end(call: Call, refresh_token: str) -> None:
    """Ends the sign-in of a refresh token, with its access tokens; one spent a moment ago will do. Commits.

    Raises:
        AuthRequired: the token is not good.
        Conflict: the server's auth mode is another one.
    """
    token_mode(call)
    reuse_s = settings_of(call.database).refresh_reuse_s
    try:
        chain_id = require_chain(call.database, refresh_token, reuse_s).chain_id
    except AuthRequired:
        chain_id, _ = require_chain_of_spent(call.database, refresh_token, reuse_s)
    end_chain(call.database, chain_id, "its owner logged out")


def end_by_access(call: Call, token: str) -> None:
    """Ends the sign-in of an access token; nothing where it has none. Commits.

    Raises:
        AuthRequired: the token is not good.
        Conflict: the server's auth mode is another one.
    """
    chain_id = token_mode(call).chain_of(token)
    if chain_id is not None:
        end_chain(call.database, chain_id, "its owner logged out")


def _require_match(mode: TokenAuthMode, chain: Chain) -> KeyMatch | Account:
    """Returns whose sign-in a chain is, if they may sign in still."""
    match: KeyMatch | Account | None
    if chain.key_id is not None:
        match = mode.find_match(chain.key_id)
    else:
        match = mode.accounts.find(chain.user_id or "")
    if match is None or match.user_id != chain.user_id:
        raise AuthRequired(NOT_VALID)
    if match.user_id is not None:
        require_active(mode, match.user_id)
    return match


def _why_refused(call: Call, mode: TokenAuthMode, text: str, key_id: str | None) -> tuple[str, str | None]:
    """Why a key was refused, for the log alone; and its id, if there is a key of that id."""
    if key_id is None:
        return "it is no API key", None
    if mode.match_key(text) is not None:
        return "its owner may not sign in", key_id
    record = find_key(call.database.system(), key_id)
    if record is None:
        return "there is no such key, or no longer", None
    return ("it has expired" if record.is_expired(now_ms()) else "its secret is wrong"), key_id


def _count_failed_from_here(call: Call) -> None:
    """Counts a wrong key by the client's address, and refuses it where too many have failed of late."""
    settings = call.configuration
    limits = settings.login_failures, settings.login_window_s
    wait = _logins(call).hit(f"address {client_address(call)}", *limits)
    if wait is not None:
        log_refused_sign_in(call, "API key", "too many have failed from this address")
        raise _limited("Too many logins have failed", wait)


def _count_good(
    call: Call, counted: str, how: str, reason: str, told: str, key_id: str | None = None
) -> None:
    """Counts a sign-in or a refresh that is good: each is a commit, so too many in a minute are refused."""
    wait = _logins(call).hit(counted, call.configuration.sign_ins_per_minute, _MINUTE)
    if wait is not None:
        log_refused_sign_in(call, how, f"{reason} too often", key_id=key_id)
        raise _limited(f"{told} too often", wait)


def _count_failed_with(call: Call, key_id: str) -> None:
    """Counts a wrong key by the id in it, whichever address it comes from."""
    settings = call.configuration
    wait = _logins(call).hit(f"key {key_id}", settings.login_failures, settings.login_window_s)
    if wait is not None:
        raise _limited("Too many logins have failed", wait)


def _logins(call: Call) -> RateLimiter:
    return limiter_of(call.database, "logins")


def _limited(what: str, wait_s: float) -> RateLimited:
    seconds = math.ceil(wait_s)
    return RateLimited(f"{what}; try again in {seconds} s.", retry_after=seconds)
