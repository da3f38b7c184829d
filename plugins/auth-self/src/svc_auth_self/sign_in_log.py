"""Who signed in, and who tried: a line of the log and of a list for each, with the address and no secret.

Failures are bounded by address, so that who guesses fills no disk.
"""

from __future__ import annotations

import logging
from typing import Any

from svc.plugin import AddressLog, Call, Counter
from svc_auth_self.records import now_ms
from svc_auth_self.sign_in_list import SignInLine, keep_sign_in

__all__ = ["log_refused_sign_in", "log_sign_in"]

_log = logging.getLogger("svc.plugin.auth.self.sign-in")
_SIGN_INS = Counter("svc_sign_ins", "Sign-ins, by the kind of credentials.", ("how", "result"))
_refused = AddressLog(_log, "refused sign-ins")


def log_sign_in(call: Call, how: str, *, user_id: str | None, key_id: str | None) -> None:
    """Writes that somebody has signed in, to the log and to the list."""
    _SIGN_INS.add(1, how, "ok")
    fields = _fields(call, how, user_id=user_id, key_id=key_id)
    _log.info("signed in", extra={"fields": fields})
    keep_sign_in(call.database, SignInLine(at=now_ms(), **fields))


def log_refused_sign_in(call: Call, how: str, reason: str, *, key_id: str | None = None) -> None:
    """Writes that somebody was refused, unless very many were from the same address.

    ``reason`` is a few words of ours: nothing that the client sent.
    """
    _SIGN_INS.add(1, how, "refused")
    fields = _fields(call, how, user_id=None, key_id=key_id)
    told = {**fields, "reason": reason}
    if _refused.warn_about("a sign-in was refused", call.client_address, told):
        keep_sign_in(call.database, SignInLine(at=now_ms(), reason=reason, **fields))


def _fields(call: Call, how: str, *, user_id: str | None, key_id: str | None) -> dict[str, Any]:
    return {
        "how": how,
        "user_id": user_id,
        "key_id": key_id,
        "remote": call.client_address,
        "request_id": call.request_id,
    }
