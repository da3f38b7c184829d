"""The cookie of a session: for whom it counts, how it is written, and that it is no other credential."""

from __future__ import annotations

import falcon
import pytest
from falcon.testing import create_environ

from svc.errors import Forbidden
from svc.pipeline.context import SvcRequest
from svc.pipeline.sessions import read_cookie, require_own_page, session_token, write_cookie

HOST = "files.example"


def environ_of(method: str = "POST", scheme: str = "http", host: str = HOST, **fields: str) -> dict[str, str]:
    environ = create_environ(method=method, scheme=scheme, host=host)
    environ["HTTP_HOST"] = host
    return {**environ, **{f"HTTP_{name.upper()}": value for name, value in fields.items()}}


OWN = [
    {"sec_fetch_site": "same-origin"},
    {"sec_fetch_site": "none"},
    {"origin": "http://files.example"},
    {"origin": "http://FILES.example:80"},
    {"origin": "https://files.example"},  # a proxy has TLS, and hands the host on
    {"origin": "https://files.example:443"},
]
FOREIGN = [
    {},
    {"origin": "null"},
    {"origin": ""},
    {"origin": "http://other.example"},
    {"origin": "http://files.example.other.example"},
    {"origin": "http://files.example:8080"},
    {"origin": "http://files.example@other.example"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
    {"sec_fetch_site": "cross-site", "origin": "http://files.example"},
    {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"},
    {"sec_fetch_site": "same-origin", "sec_fetch_dest": "script"},
]


@pytest.mark.parametrize("fields", OWN, ids=str)
def test_pages_of_this_server_may_change_something(fields: dict[str, str]) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        require_own_page(environ_of(method, **fields))


@pytest.mark.parametrize("fields", FOREIGN, ids=str)
def test_nobody_else_may(fields: dict[str, str]) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE", "PROPFIND"):
        with pytest.raises(Forbidden):
            require_own_page(environ_of(method, **fields))


@pytest.mark.parametrize(
    ("fields", "may"),
    [
        ({}, True),
        ({"sec_fetch_site": "same-origin", "sec_fetch_dest": "image"}, True),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, True),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"}, False),
        ({"sec_fetch_site": "same-site", "sec_fetch_mode": "cors"}, False),
        ({"origin": "https://other.example"}, False),
        ({"sec_fetch_site": "same-origin", "sec_fetch_dest": "style"}, False),
        ({"sec_fetch_site": "same-origin", "sec_fetch_dest": "worker"}, False),
    ],
    ids=str,
)
def test_other_sites_read_nothing_but_what_a_link_opens(fields: dict[str, str], may: bool) -> None:
    environ = environ_of("GET", **fields)
    if may:
        require_own_page(environ)
        return
    with pytest.raises(Forbidden):
        require_own_page(environ)


def test_a_request_without_the_cookie_is_nobodys_concern() -> None:
    assert session_token(environ_of()) is None
    assert session_token(environ_of(cookie="other=svc_session")) is None
    with pytest.raises(Forbidden):
        session_token(environ_of(cookie="svc_session=token"))
    assert (
        session_token(environ_of(cookie="a=b; svc_session=token", origin="http://files.example")) == "token"
    )


def test_over_tls_only_the_cookie_of_this_very_host_counts() -> None:
    own = {"sec_fetch_site": "same-origin"}
    planted = "svc_session=planted"
    assert session_token(environ_of(scheme="https", cookie=planted, **own)) is None
    both = f"{planted}; __Host-svc_session=right"
    assert session_token(environ_of(scheme="https", cookie=both, **own)) == "right"
    assert session_token(environ_of(cookie=both, **own)) == "right"


@pytest.mark.parametrize(
    ("fields", "secure"),
    [
        ({}, False),
        ({"scheme": "https"}, True),
        ({"origin": "https://files.example"}, True),
        ({"cookie": "__Host-svc_renewal=x"}, True),
    ],
    ids=str,
)
def test_a_cookie_is_for_tls_where_the_page_came_by_tls(fields: dict[str, str], secure: bool) -> None:
    req, resp = SvcRequest(environ_of(**fields)), falcon.Response()
    write_cookie(req, resp, "svc_session", "token", 60)
    (line,) = [value for name, value in resp._wsgi_headers() if name == "set-cookie"]
    parts = set(line.split("; "))
    assert parts >= {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=60"}
    assert ("Secure" in parts) is secure
    assert line.startswith("__Host-svc_session=token" if secure else "svc_session=token")
    assert "Domain" not in line
    sent = line.partition(";")[0]
    assert read_cookie(SvcRequest(environ_of(**{**fields, "cookie": sent})), "svc_session") == "token"


def test_a_cookie_without_a_value_goes() -> None:
    resp = falcon.Response()
    write_cookie(SvcRequest(environ_of()), resp, "svc_session", "", 60)
    (line,) = [value for name, value in resp._wsgi_headers() if name == "set-cookie"]
    assert "expires=Thu, 01 Jan 1970" in line
    assert "Max-Age" not in line
