"""Using a code: it signs its user in, once."""

from __future__ import annotations

from svc.errors import AuthRequired
from svc.plugin import Call
from svc_auth_magic_link.codes import use_code
from svc_auth_self.api import SignedIn, log_refused_sign_in, sign_in, token_mode

__all__ = ["not_valid", "sign_in_by"]


def sign_in_by(call: Call, code: str, *, refresh: bool) -> SignedIn:
    """Uses a code up and returns the tokens of its user; blocks for a commit.

    Raises:
        Conflict: the server's auth mode has no tokens.
        AuthRequired: the code is not good, or its user may not sign in.
    """
    mode = token_mode(call)
    used = use_code(call.database, code)
    account = None if used is None else mode.accounts.find(used.user_id)
    # Whoever reads the mail of an address that the user no longer has is somebody else, perhaps.
    if used is None or account is None or not account.is_active or account.username != used.address:
        reason = "the code is not good" if used is None else "its owner may not sign in"
        log_refused_sign_in(call, "link", reason)
        raise not_valid()
    return sign_in(call, account, refresh=refresh)


def not_valid() -> AuthRequired:
    """Returns what is said of a code that is not good, whatever is wrong with it."""
    return AuthRequired("The code is not valid: it is wrong, was used, or has expired. Ask for a new link.")
