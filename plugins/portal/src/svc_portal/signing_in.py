"""The page where one signs in: a form for each way that this server has."""

from __future__ import annotations

from urllib.parse import unquote, urlencode, urlsplit

from svc.errors import AuthRequired, InvalidInput, NotFound, RateLimited
from svc.plugin import SvcRequest
from svc_portal.api import Answer, Message, Redirect, Shown
from svc_portal.requests import PREFIX, PortalRequest
from svc_portal.session import Session, keep_session, open_session

__all__ = ["SIGN_IN", "show_sign_in", "sign_in", "sign_in_url"]

SIGN_IN = "sign-in"
_LONGEST_NEXT = 2_000


def sign_in_url(req: SvcRequest) -> str:
    """Returns the address of the page, which leads back to where somebody wanted to go."""
    target = req.env["RAW_URI"] if req.method == "GET" else req.env.get("HTTP_REFERER", "")
    wanted = _own_page("?".join(filter(None, urlsplit(target)[2:4])))
    query = "" if wanted == PREFIX else f"?{urlencode({'next': wanted})}"
    return f"{PREFIX}{SIGN_IN}{query}"


def show_sign_in(request: PortalRequest) -> Answer:
    """Shows the forms; goes on where somebody is signed in."""
    wanted = _own_page(request.query.get("next"))
    if open_session(request):
        return Redirect(wanted)
    return _page(request, wanted)


def sign_in(request: PortalRequest) -> Answer:
    """Signs somebody in, by the form that was sent."""
    request.read_form()
    wanted = _own_page(request.form.get("next"))
    chosen = next((one for one in request.sign_ins() if one.value.name == request.form.get("how")), None)
    if chosen is None:
        raise NotFound("This server has no such way to sign in.")
    values = {field.name: request.form.get(field.name) for field in chosen.value.fields}
    try:
        session = chosen.value.sign_in(request.for_extension(chosen), values)
    except (AuthRequired, InvalidInput, RateLimited) as error:
        if error.details.get("retry_after"):
            request.answer.set_header("Retry-After", str(error.details["retry_after"]))
        return _page(request, wanted, Message(error.message, is_error=True), error.status)
    if isinstance(session, Session):
        keep_session(request.http, request.answer, session)
        return Redirect(wanted)
    return Redirect(f"{PREFIX}{SIGN_IN}", session)


def _page(request: PortalRequest, wanted: str, message: Message | None = None, status: int = 200) -> Shown:
    ways = [one.value for one in request.sign_ins()]
    # A 401 would make a browser ask for a password of its own, where the challenge is one that it knows.
    shown = 403 if status == 401 else status
    return Shown("sign_in.html", {"ways": ways, "next": wanted}, "Sign in", message, shown)


def _own_page(url: str) -> str:
    """The page that somebody wanted, if it is one of the portal: nobody is led anywhere else."""
    parts = urlsplit(url)
    is_own = url.startswith(PREFIX) and "\\" not in url and url.isprintable() and len(url) <= _LONGEST_NEXT
    # A browser goes up where a segment is two dots, however they are spelled.
    leads_up = any(unquote(segment) in (".", "..") for segment in parts.path.split("/"))
    if not is_own or leads_up or parts.scheme or parts.netloc or parts.path.removeprefix(PREFIX) == SIGN_IN:
        return PREFIX
    return url
