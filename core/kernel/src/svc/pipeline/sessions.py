"""Sessions of browsers: a cookie that stands for a bearer token, and the requests for which it counts.

A browser sends a cookie whoever has made it ask, so the cookie counts only where a page of this very server
asks, or somebody who opens an address: see ``require_own_page``. ``SameSite=Strict`` says the same to the
browser; neither relies on the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import falcon

from svc.errors import Forbidden

__all__ = ["SESSION_COOKIE", "read_cookie", "require_own_page", "session_token", "write_cookie"]

SESSION_COOKIE = "svc_session"
"""The cookie with the token; over TLS its name begins with ``SECURE_PREFIX``."""
SECURE_PREFIX = "__Host-"
"""Of such a name a browser takes no cookie but one of this very host, by TLS, for all paths (RFC 6265bis)."""

_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
_OWN = ("same-origin", "none")
_PROGRAMS = frozenset(
    ("script", "style", "worker", "sharedworker", "serviceworker", "paintworklet", "audioworklet", "xslt")
)
"""What a page runs or obeys: files that anybody stored are none of it."""
_PAST = datetime(1970, 1, 1, tzinfo=UTC)
_PORTS = {"http": ":80", "https": ":443"}


def session_token(environ: Mapping[str, Any]) -> str | None:
    """Returns the token of a browser's session; None where the request brings none.

    Raises:
        Forbidden: it brings one, and is not a request for which that counts.
    """
    token = _cookie(environ, SESSION_COOKIE)
    if token is not None:
        require_own_page(environ)
    return token


def require_own_page(environ: Mapping[str, Any]) -> None:
    """Refuses what a page of another origin has made a browser ask.

    Browsers say it in ``Sec-Fetch-Site`` where the connection is trustworthy (Fetch Metadata), and in
    ``Origin`` wherever they send something. What changes nothing may also be a link that somebody follows.

    Raises:
        Forbidden: another page asks; or something is to be changed, and nothing says who asks; or a page
            wants to run what is asked for as its own program.
    """
    is_safe = environ["REQUEST_METHOD"] in _SAFE
    site = environ.get("HTTP_SEC_FETCH_SITE")
    origin = environ.get("HTTP_ORIGIN")
    if site is not None:
        # What a user does by hand, such as to reload a page, is nobody else's request; it sends no Origin.
        is_own = site in _OWN
    elif origin is not None:
        is_own = _host_of(origin) == _host_of(
            f"{environ['wsgi.url_scheme']}://{environ.get('HTTP_HOST')}", origin
        )
    else:
        is_own = is_safe
    if not is_own and not (is_safe and environ.get("HTTP_SEC_FETCH_MODE") == "navigate"):
        raise Forbidden("Pages of other origins may not use a session of this server.")
    if environ.get("HTTP_SEC_FETCH_DEST") in _PROGRAMS:
        raise Forbidden("What a session may read is no program for its pages.")


def read_cookie(req: falcon.Request, name: str) -> str | None:
    """Returns a cookie that ``write_cookie`` wrote; None where there is none. Over TLS no other counts."""
    return _cookie(req.env, name)


def write_cookie(req: falcon.Request, resp: falcon.Response, name: str, value: str, lifetime_s: int) -> None:
    """Sets a cookie that no script reads and that goes with no request of another site; for all paths.

    Args:
        req: the request: by how it came is decided whether the cookie goes by TLS alone.
        resp: the response.
        name: the name, without a prefix.
        value: visible ASCII; an empty one removes the cookie.
        lifetime_s: seconds until the browser forgets it.
    """
    secure = _is_secure(req.env)
    resp.set_cookie(
        f"{SECURE_PREFIX}{name}" if secure else name,
        value,
        max_age=lifetime_s if value else None,
        expires=None if value else _PAST,  # Falcon leaves a Max-Age of 0 out
        path="/",
        secure=secure,
        http_only=True,
        same_site="Strict",
    )


def _cookie(environ: Mapping[str, Any], name: str) -> str | None:
    text = environ.get("HTTP_COOKIE")
    if not text or name not in text:
        return None
    found: dict[str, str] = {}
    for part in text.split(";"):
        key, _, value = part.strip().partition("=")
        found.setdefault(key, value)
    secure = found.get(f"{SECURE_PREFIX}{name}")
    # A proxy may have TLS, and not be trusted to say so.
    return secure or (None if environ.get("wsgi.url_scheme") == "https" else found.get(name)) or None


def _is_secure(environ: Mapping[str, Any]) -> bool:
    """Whether the browser speaks TLS, to us or to a proxy before us; its own page says where it came from."""
    if environ.get("wsgi.url_scheme") == "https" or environ.get("HTTP_ORIGIN", "").startswith("https://"):
        return True
    return f"{SECURE_PREFIX}{SESSION_COOKIE[:4]}" in environ.get("HTTP_COOKIE", "")


def _host_of(url: str, scheme_of: str | None = None) -> str | None:
    """The host and port of a URL, without the port that its scheme has anyway. A proxy may have had TLS."""
    parts = urlsplit(url)
    scheme = urlsplit(scheme_of).scheme if scheme_of else parts.scheme
    return parts.netloc.lower().removesuffix(_PORTS.get(scheme, "")) or None
