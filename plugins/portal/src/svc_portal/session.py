"""The session of a browser: two cookies, one that signs requests in and one that renews it.

The first holds an access token, ends with it, and is what the pipeline takes for a bearer token where a page
of this server asks. The second is looked at here alone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import falcon

from svc.errors import AuthRequired
from svc.plugin import (
    SESSION_COOKIE,
    Confidential,
    SvcRequest,
    identify_caller,
    read_cookie,
    require_own_page,
    write_cookie,
)

if TYPE_CHECKING:
    from svc_portal.requests import PortalRequest

__all__ = ["RENEWAL_COOKIE", "Session", "end_session", "has_session", "keep_session", "open_session"]

RENEWAL_COOKIE = "svc_renewal"


class Session(Confidential, frozen=True, kw_only=True):
    """What somebody gets who has signed in. Its representation shows no token.

    Attributes:
        token: a bearer token.
        lifetime_s: seconds for which it is good.
        renewal: what gets the next one; None keeps what the browser has.
        renewal_s: seconds for which that is good.
    """

    shown = ("lifetime_s", "renewal_s")

    token: str
    lifetime_s: int
    renewal: str | None = None
    renewal_s: int = 0


def open_session(request: PortalRequest) -> bool:
    """Finds out who asks; renews a session whose token has ended. Returns whether somebody is signed in.

    Raises:
        Forbidden: a page of another origin asks, with the cookie of a session.
    """
    try:
        identify_caller(request.http)
    except AuthRequired:
        return renew(request)
    return True


def renew(request: PortalRequest) -> bool:
    """Renews the session of a browser; returns whether it has one from now on."""
    renewal = read_cookie(request.http, RENEWAL_COOKIE)
    if renewal is None:
        return False
    require_own_page(request.http.env)
    try:
        for sign_in in request.sign_ins():
            session = sign_in.value.renew(request, renewal)
            if session is not None:
                keep_session(request.http, request.answer, session)
                identify_caller(request.http, session.token)
                return True
    except AuthRequired:
        pass
    forget_session(request.http, request.answer)
    return False


def keep_session(req: SvcRequest, resp: falcon.Response, session: Session) -> None:
    """Gives the browser the cookies of a session."""
    write_cookie(req, resp, SESSION_COOKIE, session.token, session.lifetime_s)
    if session.renewal is not None:
        write_cookie(req, resp, RENEWAL_COOKIE, session.renewal, session.renewal_s)


def end_session(request: PortalRequest) -> None:
    """Ends the session of the browser, with its tokens; by either cookie, since one of them may be old."""
    for name in (RENEWAL_COOKIE, SESSION_COOKIE):
        token = read_cookie(request.http, name)
        if token is not None:
            with suppress(AuthRequired):  # It has ended before.
                any(sign_in.value.end(request, token) for sign_in in request.sign_ins())
    forget_session(request.http, request.answer)


def forget_session(req: SvcRequest, resp: falcon.Response) -> None:
    """Takes the cookies of a session from the browser."""
    for name in (SESSION_COOKIE, RENEWAL_COOKIE):
        write_cookie(req, resp, name, "", 0)


def has_session(req: SvcRequest) -> bool:
    """Whether the browser has brought a session; where nobody signs in there is none to end."""
    return any(read_cookie(req, name) for name in (SESSION_COOKIE, RENEWAL_COOKIE))
