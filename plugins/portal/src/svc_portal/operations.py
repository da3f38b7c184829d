"""The operations: pages, what they load, and the session of a browser.

All are public to the pipeline, since who has no session is shown the way to one instead of an error. Which
page is for whom is decided behind that, by the same identity and rights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import Forbidden, NotFound, PreconditionFailed, RangeNotSatisfiable
from svc.plugin import Weight, operation, public

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = [
    "act_on_page",
    "redirect_to_first_page",
    "renew_session",
    "show_asset",
    "show_first_page",
    "show_page",
]

_HTML = ("", "text/html")
_FORM = ("application/x-www-form-urlencoded", "text/html")


@operation(
    "GET",
    "/portal",
    public,
    status=308,
    weight=Weight.SMALL,
    responder="svc_portal.responders:redirect_to_first_page",
)
def redirect_to_first_page(call: Call) -> None:
    """Redirects to the portal."""


@operation(
    "GET",
    "/portal/",
    public,
    status=303,
    weight=Weight.DEAR,
    media_types=_HTML,
    responder="svc_portal.responders:show_first_page",
)
def show_first_page(call: Call) -> bytes:
    """Redirects to the first page of who is signed in, or to where one signs in."""


@operation(
    "GET",
    "/portal/static/{asset:text}",
    public,
    errors=(NotFound, PreconditionFailed, RangeNotSatisfiable),
    weight=Weight.SMALL,
    media_types=("", "application/octet-stream"),
    responder="svc_portal.responders:show_asset",
)
def show_asset(call: Call, asset: str) -> bytes:
    """Reads a style sheet, a script or a picture that pages load."""


@operation(
    "POST",
    "/portal/renew",
    public,
    status=204,
    errors=(Forbidden,),
    weight=Weight.SMALL,
    responder="svc_portal.responders:renew_session",
)
def renew_session(call: Call) -> None:
    """Renews the session of a browser; for scripts of pages that stay open."""


@operation(
    "GET",
    "/portal/{page:text}",
    public,
    errors=(NotFound, Forbidden),
    weight=Weight.DEAR,
    media_types=_HTML,
    responder="svc_portal.responders:show_page",
)
def show_page(call: Call, page: str) -> bytes:
    """Shows a page that a plugin has added."""


@operation(
    "POST",
    "/portal/{page:text}",
    public,
    errors=(NotFound, Forbidden),
    weight=Weight.DEAR,
    media_types=_FORM,
    responder="svc_portal.responders:act_on_page",
)
def act_on_page(call: Call, page: str, body: bytes) -> bytes:
    """Does what a form of a page asks for, by a page of this server alone."""
