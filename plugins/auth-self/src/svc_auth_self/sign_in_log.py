"""Who signed in, and who tried: a line of the log for each, with the address and no secret.

Failures are bounded by address, so that who guesses fills no disk.
"""

from __future__ import annotations

import logging

from svc.plugin import AddressLog, Call

__all__ = ["log_refused_sign_in", "log_sign_in"]

_log = logging.getLogger("svc.plugin.auth.self.sign-in")
_refused = AddressLog(_log, "refused sign-ins")


def log_sign_in(call: Call, how: str, *, user_id: str | None, key_id: str | None) -> None:
    """Writes that somebody has signed in."""
    _log.info("signed in", extra={"fields": _fields(call, how, user_id=user_id, key_id=key_id)})


def log_refused_sign_in(call: Call, how: str, reason: str, *, key_id: str | None = None) -> None:
    """Writes that somebody was refused, unless very many were from the same address.

    ``reason`` is a few words of ours: nothing that the client sent.
    """
    fields = {**_fields(call, how, user_id=None, key_id=key_id), "reason": reason}
    _refused.warn_about("a sign-in was refused", call.client_address, fields)


def _fields(call: Call, how: str, *, user_id: str | None, key_id: str | None) -> dict[str, str | None]:
    return {
        "how": how,
        "user_id": user_id,
        "key_id": key_id,
        "remote": call.client_address,
        "request_id": call.request_id,
    }
