"""``/auth/token``, ``/auth/refresh`` and ``/auth/logout``."""

from __future__ import annotations

import math

import falcon

from svc.errors import AuthRequired, RateLimited
from svc.plugin import Confidential, Database, Version, context_of, public, read_json, send_json
from svc_auth_self.addresses import client_address
from svc_auth_self.keys import find_key, key_id_of
from svc_auth_self.limiter import RateLimiter
from svc_auth_self.mode import TokenAuthMode
from svc_auth_self.records import now_ms
from svc_auth_self.refresh import end_chain, require_chain
from svc_auth_self.settings import settings_of
from svc_auth_self.sign_in import SignedIn, refresh, sign_in, token_mode
from svc_auth_self.sign_in_log import log_refused_sign_in

__all__ = ["LogoutResource", "RefreshResource", "TokenResource"]

_MOST_BYTES = 16 * 1024
_MINUTE = 60
_KEY_NOT_VALID = "The API key is not valid: it is unknown, was revoked, or has expired."


class TokenBody(Confidential, frozen=True, forbid_unknown_fields=True):
    """The body that exchanges a key, for an access token alone where ``refresh`` is false."""

    shown = ("refresh",)

    api_key: str
    refresh: bool = True


class RefreshBody(Confidential, frozen=True, forbid_unknown_fields=True):
    """The body that spends a refresh token, or ends its chain."""

    refresh_token: str


class LoginLimits:
    """Counts failed logins by address and by key, and good ones by key; all workers count together.

    One for each application; safe in every thread.
    """

    def __init__(self) -> None:
        self._limiters: tuple[Database, RateLimiter] | None = None

    def require_room(self, req: falcon.Request) -> None:
        """Refuses a client from whose address too many logins have failed of late."""
        database = context_of(req).database
        settings = settings_of(database)
        wait = self._of(database).wait(
            f"address {client_address(req)}", settings.login_failures, settings.login_window_s
        )
        if wait is not None:
            log_refused_sign_in(context_of(req), "API key", "too many have failed from this address")
            raise _limited("Too many logins have failed", wait)

    def count_good(self, req: falcon.Request, key_id: str) -> None:
        """Counts a login with a good key: each is a commit, so too many in a minute are RateLimited."""
        database = context_of(req).database
        most = settings_of(database).sign_ins_per_minute
        wait = self._of(database).hit(f"good {key_id}", most, _MINUTE)
        if wait is not None:
            log_refused_sign_in(context_of(req), "API key", "the key signs in too often", key_id=key_id)
            raise _limited("This key is exchanged too often", wait)

    def count_refresh(self, req: falcon.Request, chain_id: str) -> None:
        """Counts a refresh token that is good, as ``count_good`` counts keys."""
        database = context_of(req).database
        most = settings_of(database).sign_ins_per_minute
        wait = self._of(database).hit(f"chain {chain_id}", most, _MINUTE)
        if wait is not None:
            log_refused_sign_in(context_of(req), "refresh token", "it is refreshed too often")
            raise _limited("This sign-in is refreshed too often", wait)

    def count_failed(self, req: falcon.Request, key_id: str | None) -> None:
        """Counts a failed login.

        The owner of a key is not held up by those who guess at it: only wrong keys are counted, and
        RateLimited.
        """
        database = context_of(req).database
        settings = settings_of(database)
        limits, window = settings.login_failures, settings.login_window_s
        limiter = self._of(database)
        limiter.hit(f"address {client_address(req)}", limits, window)
        if key_id is not None and (wait := limiter.hit(f"key {key_id}", limits, window)) is not None:
            raise _limited("Too many logins have failed", wait)

    def _of(self, database: Database) -> RateLimiter:
        known = self._limiters
        if known is None or known[0] is not database:
            known = self._limiters = (database, RateLimiter(database.state_directory, "logins"))
        return known[1]


class TokenResource:
    """Where API keys are exchanged."""

    def __init__(self, limits: LoginLimits) -> None:
        self._limits = limits

    @public
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Exchanges a key for an access token and a refresh token."""
        context = context_of(req)
        mode = token_mode(context)
        self._limits.require_room(req)
        body = read_json(req, TokenBody, _MOST_BYTES)
        text = body.api_key.strip()
        match = mode.match_key(text)
        try:
            if match is None:
                raise AuthRequired(_KEY_NOT_VALID)
            self._limits.count_good(req, match.key_id)
            signed_in = sign_in(context, match, refresh=body.refresh)
        except AuthRequired:
            key_id = key_id_of(text)
            reason, known = _why_refused(context.database.system(), mode, text, key_id)
            log_refused_sign_in(context, "API key", reason, key_id=known)
            self._limits.count_failed(req, key_id)
            raise AuthRequired(_KEY_NOT_VALID) from None
        _send(resp, signed_in)


def _why_refused(
    system: Version, mode: TokenAuthMode, text: str, key_id: str | None
) -> tuple[str, str | None]:
    """Why a key was refused, for the log alone; and its id, if there is a key of that id."""
    if key_id is None:
        return "it is no API key", None
    if mode.match_key(text) is not None:
        return "its owner may not sign in", key_id
    record = find_key(system, key_id)
    if record is None:
        return "there is no such key, or no longer", None
    return ("it has expired" if record.is_expired(now_ms()) else "its secret is wrong"), key_id


class RefreshResource:
    """Where refresh tokens are spent.

    Failures are not counted: of many requests with one token all but one fail, and nobody guesses 512 bits.
    """

    def __init__(self, limits: LoginLimits) -> None:
        self._limits = limits

    @public
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Gives the next access token and refresh token."""
        context = context_of(req)
        token_mode(context)
        token = read_json(req, RefreshBody, _MOST_BYTES).refresh_token
        _send(resp, refresh(context, token, lambda chain_id: self._limits.count_refresh(req, chain_id)))


class LogoutResource:
    """Where a sign-in ends."""

    @public
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Ends the chain of a refresh token, with its access tokens."""
        context = context_of(req)
        token_mode(context)
        token = read_json(req, RefreshBody, _MOST_BYTES).refresh_token
        presented = require_chain(context.database, token, settings_of(context.database).refresh_reuse_s)
        end_chain(context.database, presented.chain_id, "its owner logged out")
        send_json(resp, {"logged_out": True})


def _send(resp: falcon.Response, signed_in: SignedIn) -> None:
    # RFC 6749, section 5.1: nobody on the way keeps it.
    resp.set_header("Cache-Control", "no-store")
    send_json(resp, signed_in)


def _limited(what: str, wait_s: float) -> RateLimited:
    seconds = math.ceil(wait_s)
    return RateLimited(f"{what}; try again in {seconds} s.", retry_after=seconds)
