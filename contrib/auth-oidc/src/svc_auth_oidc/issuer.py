"""The public keys of an issuer: fetched when they are needed, kept, and fetched anew when they change.

A worker fetches them at its first token, then every ``refresh_s``, and at once when a token names a key that
it does not know, since issuers rotate their keys. Whatever tokens come, ``retry_s`` lie between two fetches.
While the issuer does not answer, the keys at hand go on for ``stale_s``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from svc.errors import ServiceUnavailable
from svc.plugin import run_blocking
from svc_auth_oidc.configuration import OidcSettings
from svc_auth_oidc.documents import FetchFailed, SigningKey, fetch_keys

__all__ = ["IssuerKeys"]

logger = logging.getLogger("svc.plugin.auth.oidc")

_WAITING = 16
"""Most requests that wait for a fetch at a time, each on a thread; further ones are told to come again."""


class _State(Struct, frozen=True):
    """What is known of the issuer; replaced as a whole. Times are of a monotonic clock."""

    keys: Mapping[str | None, SigningKey] = field(default_factory=dict)
    fetched: float = float("-inf")
    attempted: float = float("-inf")
    is_failing: bool = False


class IssuerKeys:
    """The keys of one issuer, in one process. Used by many greenlets at once.

    Args:
        issuer: URL of the issuer.
        settings: how often to fetch.
        fetch: gives the keys by their ids; blocks.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self,
        issuer: str,
        settings: OidcSettings,
        *,
        fetch: Callable[[str, float], Mapping[str | None, SigningKey]] = fetch_keys,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer = issuer
        self._settings = settings
        self._fetch = fetch
        self._clock = clock
        self._state = _State()
        self._lock = threading.Lock()
        self._seats = threading.BoundedSemaphore(_WAITING)

    @property
    def is_failing(self) -> bool:
        """Whether the last fetch failed."""
        return self._state.is_failing

    def find(self, kid: str | None) -> SigningKey | None:
        """Returns the key of this id; None where the issuer has none.

        Fetches the keys where that is due, on a native thread: other requests run meanwhile, and those with
        known keys do not wait.

        Raises:
            ServiceUnavailable: nobody can tell, because the issuer does not answer.
        """
        state, now = self._state, self._clock()
        is_known = kid in state.keys
        is_due = not is_known or now - state.fetched >= self._settings.refresh_s
        if is_due and now - state.attempted >= self._settings.retry_s:
            if not is_known or not self._lock.locked():
                self._wait_for_fetch(state)
            state = self._state
        is_usable = now - state.fetched < self._settings.stale_s
        key = state.keys.get(kid) if is_usable else None
        if key is None and state.is_failing:
            raise self._unavailable("The identity provider does not answer, so the token cannot be checked.")
        return key

    def _wait_for_fetch(self, seen: _State) -> None:
        if not self._seats.acquire(blocking=False):
            raise self._unavailable("Too many tokens wait for the keys of the identity provider.")
        try:
            run_blocking(self._renew, seen)
        finally:
            self._seats.release()

    def _renew(self, seen: _State) -> None:
        """Fetches the keys, unless somebody else did while this waited."""
        with self._lock:
            before = self._state
            if before is not seen:
                return
            attempted = self._clock()
            try:
                fetched = self._fetch(self._issuer, self._settings.timeout_s)
            except FetchFailed as error:
                logger.warning("The keys of the issuer could not be fetched: %s", error)
                self._state = _State(before.keys, before.fetched, attempted, is_failing=True)
                return
            # A key that did not change stays the same object, so that no token is checked again.
            kept = {kid: old if (old := before.keys.get(kid)) == key else key for kid, key in fetched.items()}
            self._state = _State(kept, attempted, attempted)

    def _unavailable(self, message: str) -> ServiceUnavailable:
        details: dict[str, Any] = {"retry_after": max(1, self._settings.retry_s)}
        return ServiceUnavailable(message, **details)
