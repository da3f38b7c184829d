"""``/auth/magic-link``: ask for a link, and use the code in it.

The answer to whoever asks is the same for every address, and nothing that depends on the address is done
before it: see ``delivery``.
"""

from __future__ import annotations

import math
import unicodedata
from typing import Annotated

import falcon
import msgspec

from svc.errors import AuthRequired, InvalidInput, RateLimited
from svc.plugin import (
    Confidential,
    context_of,
    hash_content,
    public,
    query_flag,
    query_text,
    read_json,
    send_json,
)
from svc_auth_magic_link.codes import is_code, use_code
from svc_auth_magic_link.configuration import MagicLinkSettings
from svc_auth_magic_link.delivery import delivery_of
from svc_auth_magic_link.limiting import limiter_of
from svc_auth_magic_link.page import PAGE_POLICY, confirmation_page
from svc_auth_self.api import log_refused_sign_in, sign_in, token_mode

__all__ = ["ANSWER", "MOST_REQUESTS", "WINDOW_SECONDS", "MagicLinkResource", "VerifyResource"]

ANSWER = "If an active user has this address, a link to sign in is on its way to it."
"""What everybody is told who asks."""

MOST_REQUESTS = 5
WINDOW_SECONDS = 15 * 60

_MOST_JSON = 16 * 1024
_MOST_CODE = 200
_FETCHED_AHEAD = ("prefetch", "prerender", "preview")


class _Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of ``POST /auth/magic-link``."""

    email: Annotated[str, msgspec.Meta(min_length=1, max_length=320)]


class _Verified(Confidential, frozen=True):
    """The answer to a code."""

    shown = ("expires_in",)

    token: str
    expires_in: int


class MagicLinkResource:
    """Asking for a link."""

    @public
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Takes the request down; 200 whoever asks, 429 when there were too many for this address."""
        context = context_of(req)
        settings: MagicLinkSettings = context.configuration
        email = _normal(read_json(req, _Ask, _MOST_JSON).email)
        mode = token_mode(context)
        wait_s = limiter_of(context.database).hit(_key_of(email), MOST_REQUESTS, WINDOW_SECONDS)
        if wait_s is not None:
            raise RateLimited(
                f"At most {MOST_REQUESTS} links are sent to an address in {WINDOW_SECONDS // 60} minutes.",
                retry_after=math.ceil(wait_s),
                limit=MOST_REQUESTS,
            )
        if settings.gives_links:
            delivery_of(context.database).request(email, mode.accounts, settings)
        resp.set_header("Cache-Control", "no-store")
        send_json(resp, {"message": ANSWER})


class VerifyResource:
    """Using a code."""

    @public
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Signs the user of a code in. A browser is shown a page first, so that no scanner uses it up."""
        code = _code_of(req)
        if any(word in _purpose(req) for word in _FETCHED_AHEAD):
            raise InvalidInput("A link that signs in is not fetched ahead: the code is still good.")
        context = context_of(req)
        mode = token_mode(context)
        resp.set_header("Cache-Control", "no-store")
        resp.set_header("Referrer-Policy", "no-referrer")
        if _is_browser(req) and not query_flag(req, "confirm"):
            _require_form(code)
            resp.content_type = "text/html; charset=utf-8"
            resp.set_header("Content-Security-Policy", PAGE_POLICY)
            resp.text = confirmation_page(code)
            return
        used = use_code(context.database, code)
        account = None if used is None else mode.accounts.find(used.user_id)
        # Whoever reads the mail of an address that the user no longer has is somebody else, perhaps.
        if used is None or account is None or not account.is_active or account.username != used.address:
            reason = "the code is not good" if used is None else "its owner may not sign in"
            log_refused_sign_in(context, "link", reason)
            raise _not_valid()
        signed_in = sign_in(context, account, refresh=False)
        send_json(resp, _Verified(signed_in.token, signed_in.expires_in))

    @public
    def on_head(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Says that there is such a route, and leaves the code alone: scanners of mail ask so."""
        _code_of(req)
        resp.set_header("Cache-Control", "no-store")
        resp.content_type = "application/json"


def _normal(email: str) -> str:
    """The form of an address that is the same for all spellings, as for usernames."""
    composed = unicodedata.normalize("NFC", email.strip())
    return unicodedata.normalize("NFC", composed.casefold())


def _key_of(email: str) -> str:
    """What requests are counted under: no address is kept."""
    return hash_content(email.encode("utf-8", "surrogatepass")).hex()


def _code_of(req: falcon.Request) -> str:
    code = query_text(req, "code")
    if not code:
        raise InvalidInput("The parameter code is needed: the code of the link.", field="code")
    if len(code) > _MOST_CODE:
        raise _not_valid()
    return code


def _require_form(code: str) -> None:
    if not is_code(code):
        raise _not_valid()


def _not_valid() -> AuthRequired:
    return AuthRequired("The code is not valid: it is wrong, was used, or has expired. Ask for a new link.")


def _purpose(req: falcon.Request) -> str:
    fields = (req.get_header(name) or "" for name in ("Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"))
    return " ".join(fields).lower()


def _is_browser(req: falcon.Request) -> bool:
    """Whether a person looks at the answer: a browser names HTML, programs and the specification don't."""
    return "text/html" in req.accept.lower()
