"""Keys and refresh tokens become tokens, within limits that all workers count together.

Failed exchanges are counted by address and by key, good ones by key. Failed refreshes are not counted: of
many requests with one token all but one fail, and nobody guesses 512 bits.
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
from svc_auth_self.refresh import NOT_VALID, end_chain, refresh_chain, require_chain
from svc_auth_self.sign_in import require_active, sign_in, token_mode
from svc_auth_self.sign_in_log import log_refused_sign_in

__all__ = ["end", "exchange_key", "refresh"]

_MINUTE = 60
_KEY_NOT_VALID = "The API key is not valid: it is unknown, was revoked, or has expired."


def exchange_key(call: Call, key: str, *, refresh: bool) -> SignedIn:
    """Returns tokens for the text of a key. May commit.

    Raises:
        AuthRequired: the key is not good; every reason reads the same.
        RateLimited: too many have failed from this address or with this key, or it is exchanged too often.
        Conflict: the server's auth mode is another one.
    """
    mode = token_mode(call)
    _require_room(call)
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
        reason, known = _why_refused(call, mode, key, key_id)
        log_refused_sign_in(call, "API key", reason, key_id=known)
        _count_failed(call, key_id)
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
    chain = presented.chain
    match: KeyMatch | Account | None
    if chain.key_id is not None:
        match = mode.find_match(chain.key_id)
    else:
        match = mode.accounts.find(chain.user_id or "")
    if match is None or match.user_id != chain.user_id:
        raise AuthRequired(NOT_VALID)
    if match.user_id is not None:
        require_active(mode, match.user_id)
    # Before the old one is spent: what fails now can be tried again.
    token, expires_in = mode.write_token(match, settings.jwt_expiry, presented.chain_id)
    following = refresh_chain(
        call.database, presented, days=settings.refresh_days, reuse_s=settings.refresh_reuse_s
    )
    return SignedIn(token=token, expires_in=expires_in, refresh_token=following)


def end(call: Call, refresh_token: str) -> None:
    """Ends the sign-in of a refresh token, with its access tokens. Commits.

    Raises:
        AuthRequired: the token is not good.
        Conflict: the server's auth mode is another one.
    """
    token_mode(call)
    presented = require_chain(call.database, refresh_token, call.configuration.refresh_reuse_s)
    end_chain(call.database, presented.chain_id, "its owner logged out")


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


def _require_room(call: Call) -> None:
    """Refuses a client from whose address too many have failed of late."""
    settings = call.configuration
    limits = settings.login_failures, settings.login_window_s
    wait = _logins(call).wait(f"address {client_address(call)}", *limits)
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


def _count_failed(call: Call, key_id: str | None) -> None:
    """Counts a failure. Only wrong keys are refused for it: who guesses at a key holds up no owner."""
    settings, limiter = call.configuration, _logins(call)
    limits = settings.login_failures, settings.login_window_s
    limiter.hit(f"address {client_address(call)}", *limits)
    if key_id is not None and (wait := limiter.hit(f"key {key_id}", *limits)) is not None:
        raise _limited("Too many logins have failed", wait)


def _logins(call: Call) -> RateLimiter:
    return limiter_of(call.database, "logins")


def _limited(what: str, wait_s: float) -> RateLimited:
    seconds = math.ceil(wait_s)
    return RateLimited(f"{what}; try again in {seconds} s.", retry_after=seconds)
