"""``/auth/magic-link/verify``: the code in a link signs in, behind a page that a browser is shown."""

from __future__ import annotations

import falcon

from svc.errors import InvalidInput
from svc.plugin import context_of, read_parameters, send_json
from svc_auth_magic_link.codes import is_code
from svc_auth_magic_link.models import CodeQuery, Verified
from svc_auth_magic_link.page import PAGE_POLICY, confirmation_page
from svc_auth_magic_link.using import not_valid, sign_in_by
from svc_auth_self.api import token_mode

__all__ = ["use_link"]

_MOST_CODE = 200
_FETCHED_AHEAD = ("prefetch", "prerender", "preview")


def use_link(req: falcon.Request, resp: falcon.Response) -> None:
    """Signs the user of a code in, or shows the page that asks for it.

    HEAD says that there is such a route, and leaves the code alone: scanners of mail ask so.
    """
    query = read_parameters(req, CodeQuery)
    if not query.code:
        raise InvalidInput("The parameter code is needed: the code of the link.", field="code")
    if len(query.code) > _MOST_CODE:
        raise not_valid()
    if req.method == "HEAD":
        resp.set_header("Cache-Control", "no-store")
        resp.content_type = "application/json"
        return
    if any(word in _purpose(req) for word in _FETCHED_AHEAD):
        raise InvalidInput("A link that signs in is not fetched ahead: the code is still good.")
    context = context_of(req)
    token_mode(context)
    resp.set_header("Cache-Control", "no-store")
    resp.set_header("Referrer-Policy", "no-referrer")
    if _is_browser(req) and not query.confirm:
        if not is_code(query.code):
            raise not_valid()
        resp.content_type = "text/html; charset=utf-8"
        resp.set_header("Content-Security-Policy", PAGE_POLICY)
        resp.text = confirmation_page(query.code)
        return
    signed_in = sign_in_by(context, query.code, refresh=False)
    send_json(resp, Verified(signed_in.token, signed_in.expires_in))


def _purpose(req: falcon.Request) -> str:
    fields = (req.get_header(name) or "" for name in ("Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"))
    return " ".join(fields).lower()


def _is_browser(req: falcon.Request) -> bool:
    """Whether a person looks at the answer: a browser names HTML, programs and the specification don't."""
    return "text/html" in req.accept.lower()
