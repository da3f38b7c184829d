"""The responders: they find the page, and who asks for it; and send what the page answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import falcon

from svc.errors import AuthRequired, NotFound, SvcError
from svc.plugin import (
    Family,
    SvcRequest,
    errors_as_page,
    require_own_page,
    send_content,
    send_stream,
    set_fields,
)
from svc_portal.api import (
    PAGES,
    PREVIEWS,
    STATE_CARDS,
    Answer,
    Handed,
    Message,
    Redirect,
    Shown,
)
from svc_portal.assets import find_asset
from svc_portal.frame import plain_error, show
from svc_portal.messages import keep_message
from svc_portal.rendering import OWN_PACKAGE, package_of
from svc_portal.requests import PREFIX, PortalRequest
from svc_portal.routing import find_page
from svc_portal.session import end_session, open_session, renew
from svc_portal.signing_in import SIGN_IN, show_sign_in, sign_in, sign_in_url

__all__ = [
    "act_on_page",
    "redirect_to_first_page",
    "renew_session",
    "show_asset",
    "show_first_page",
    "show_page",
]

SIGN_OUT = "sign-out"

_HTML = "text/html; charset=utf-8"
_FIELDS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; media-src 'self'; frame-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "content-type": _HTML,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # Not no-referrer: browsers would say nothing of where a form comes from either.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_ASSET_FIELDS = {
    # What a worker may do follows from its script: it alone may compile WebAssembly, no page may.
    "content-security-policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'",
    "cross-origin-resource-policy": "same-origin",
}
_HANDED_FIELDS = ("content-type", "content-disposition", "content-length")


def _show_error(resp: falcon.Response, status: int) -> None:
    set_fields(resp, _FIELDS)
    resp.data = plain_error(status)


def redirect_to_first_page(_req: SvcRequest, resp: falcon.Response) -> None:
    """The links of pages begin with it."""
    resp.status = falcon.HTTP_308
    resp.location = PREFIX


@errors_as_page(_show_error)
def show_first_page(req: SvcRequest, resp: falcon.Response) -> None:
    """The first page of the navigation, or where one signs in."""

    def first_page(request: PortalRequest) -> Answer:
        from svc_portal.frame import navigation

        found = navigation(request)
        return Redirect(found[0].url if found else f"{PREFIX}state")

    _answer(req, resp, first_page)


@errors_as_page(_show_error)
def show_page(req: SvcRequest, resp: falcon.Response, page: str) -> None:
    """A page, for who may see it."""
    if page == SIGN_IN:
        _send(PortalRequest(req, resp), show_sign_in)
        return
    _answer(req, resp, lambda request: _page_of(request, page)(False))


@errors_as_page(_show_error)
def act_on_page(req: SvcRequest, resp: falcon.Response, page: str) -> None:
    """What a form of a page asks for."""
    require_own_page(req.env)
    if page in (SIGN_IN, SIGN_OUT):
        _send(PortalRequest(req, resp), sign_in if page == SIGN_IN else _sign_out)
        return
    _answer(req, resp, lambda request: _page_of(request, page)(True))


@errors_as_page(_show_error)
def renew_session(req: SvcRequest, resp: falcon.Response) -> None:
    """For scripts: 204, or 401 where the session has ended."""
    require_own_page(req.env)
    request = PortalRequest(req, resp)
    if not renew(request):
        raise AuthRequired("The session has ended.")
    resp.status = falcon.HTTP_204


def show_asset(req: SvcRequest, resp: falcon.Response, asset: str) -> None:
    """A file of the portal, or of a plugin that has pages."""
    request = PortalRequest(req, resp)
    families: tuple[Family[Any], ...] = (PAGES, PREVIEWS, STATE_CARDS)
    packages = {
        package_of(one.value) for family in families for one in request.portal.extensions(family).values()
    }
    found = find_asset(asset, {OWN_PACKAGE, *packages})
    if found is None:
        raise NotFound("There is no such file.")
    set_fields(resp, _ASSET_FIELDS)
    send_content(
        req,
        resp,
        size=len(found.content),
        etag=found.etag,
        updated_ms=None,
        content_type=found.content_type,
        read=lambda start, length: iter([found.content[start : start + length]]),
    )


def _answer(
    req: SvcRequest, resp: falcon.Response, find: Callable[[PortalRequest], Answer | _Framed]
) -> None:
    """Answers who is signed in; sends all others to where one signs in."""
    request = PortalRequest(req, resp)
    if open_session(request):
        _send(request, find)
    elif req.env.get("HTTP_SEC_FETCH_SITE") == "cross-site" and req.method in ("GET", "HEAD"):
        # A link on another site: the browser keeps the cookies to itself, and sends them where we ask.
        _send(request, lambda _: Shown("again.html", title="One moment"))
    else:
        message = None
        if req.method == "POST":
            message = Message(
                "The session has ended. What you sent was not done: sign in again.", is_error=True
            )
        _send(request, lambda _: Redirect(sign_in_url(req), message))


def _page_of(request: PortalRequest, path: str) -> Callable[[bool], Answer | _Framed]:
    found = find_page(request.portal.extensions(PAGES), path)
    if found is None:
        raise NotFound("There is no such page.")
    extension, fields = found
    page = extension.value
    own = request.for_extension(extension)
    own.fields, own.page = fields, page.name
    if not page.is_for(own):
        raise NotFound("There is no such page.")

    def answer(acts: bool) -> Answer | _Framed:
        if acts:
            own.read_form()
        shown = page.act(own) if acts else page.show(own)
        if isinstance(shown, Shown):
            return _Framed(own, package_of(page), shown, page.title)
        return shown

    return answer


def _sign_out(request: PortalRequest) -> Answer:
    end_session(request)
    return Redirect(f"{PREFIX}{SIGN_IN}", Message("You have signed out."))


def _send(request: PortalRequest, find: Callable[[PortalRequest], Answer | _Framed]) -> None:
    """Sends what is answered; the page of the error where there is one."""
    resp = request.answer
    answer: Answer | _Framed
    try:
        answer = find(request)
    except AuthRequired:
        answer = Redirect(sign_in_url(request.http))
    except SvcError as error:
        if error.status >= 500 and error.status != 503:
            raise
        values = {"error": error.message, "status": error.status}
        answer = Shown("error.html", values, title="This did not work", status=error.status)
        retry_after = error.details.get("retry_after")
        if retry_after:
            resp.set_header("Retry-After", str(retry_after))
    set_fields(resp, _FIELDS)
    if isinstance(answer, Redirect):
        if answer.message is not None:
            keep_message(request.http, resp, answer.message)
        resp.status = falcon.HTTP_303
        resp.location = answer.to
        resp.data = b""
    elif isinstance(answer, Handed):
        handed = answer.answer
        set_fields(resp, {name: handed.headers[name] for name in _HANDED_FIELDS if name in handed.headers})
        send_stream(resp, handed.pieces, None)
    else:
        framed = answer if isinstance(answer, _Framed) else _Framed(request, OWN_PACKAGE, answer, "")
        resp.status = framed.shown.status
        resp.data = framed.render()


class _Framed:
    """A page of a package, which is to stand in the frame."""

    def __init__(self, request: PortalRequest, package: str, shown: Shown, title: str) -> None:
        self.request, self.package, self.shown, self.title = request, package, shown, title

    def render(self) -> bytes:
        page = show(self.request, self.package, self.shown, self.shown.title or self.title)
        return page.encode("utf-8", "replace")  # JSON may hold halves of characters
