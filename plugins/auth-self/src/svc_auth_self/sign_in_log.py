"""Who signed in, and who tried: a line of the log for each, with the address and no secret.

Failures are bounded by address, so that who guesses fills no disk.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter

from svc.plugin import RequestContext

__all__ = ["MOST_FAILURES", "log_refused_sign_in", "log_sign_in"]

MOST_FAILURES = 30
"""Lines in a minute about one address; a last one says that there are more."""

_MINUTE = 60
_MOST_ADDRESSES = 10_000

_log = logging.getLogger("svc.plugin.auth.self.sign-in")


def log_sign_in(context: RequestContext, how: str, *, user_id: str | None, key_id: str | None) -> None:
    """Writes that somebody has signed in.

    Args:
        context: of the request.
        how: by what: ``API key``.
        user_id: who; None for a share key, which has no owner.
        key_id: by which key, if by one.
    """
    _log.info("signed in", extra={"fields": _fields(context, how, user_id=user_id, key_id=key_id)})


def log_refused_sign_in(context: RequestContext, how: str, reason: str, *, key_id: str | None = None) -> None:
    """Writes that somebody was refused, unless very many were from the same address.

    Args:
        context: of the request.
        how: by what it was tried.
        reason: why, in a few words of ours: nothing that the client sent.
        key_id: of the key that was tried, where there is one of this id.
    """
    seen = _failures.count(context.client_address or "")
    if seen <= MOST_FAILURES:
        fields = {**_fields(context, how, user_id=None, key_id=key_id), "reason": reason}
        _log.warning("a sign-in was refused", extra={"fields": fields})
    if seen == MOST_FAILURES:
        _log.warning(
            "further refused sign-ins of this address are not written for a minute",
            extra={"fields": {"remote": context.client_address}},
        )


def _fields(
    context: RequestContext, how: str, *, user_id: str | None, key_id: str | None
) -> dict[str, str | None]:
    return {
        "how": how,
        "user_id": user_id,
        "key_id": key_id,
        "remote": context.client_address,
        "request_id": context.request_id,
    }


class _Failures:
    """Counts failures by address within a minute."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._ends = 0.0

    def count(self, address: str) -> int:
        """Counts one, and returns how many there were in this minute."""
        with self._mutex:
            now = time.monotonic()
            if now >= self._ends or len(self._counts) >= _MOST_ADDRESSES:
                self._counts.clear()
                self._ends = now + _MINUTE
            self._counts[address] += 1
            return self._counts[address]


_failures = _Failures()
