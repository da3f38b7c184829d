"""Spent and changed refresh tokens, limits of guessing, codes of mails, and pages of links.

Every attempt stands in docs/security/attempts.md.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import pytest

from attack.strangers import Caller, World, assert_refused, side_by_side, until_let
from svc_blackbox.client import files

# -- refresh tokens --------------------------------------------------------------------------------


def refresh_token_of(world: World, name: str) -> str:
    body = {"api_key": world.callers[name].key}
    response = until_let(lambda: Caller(world, "x").ask("POST", "/auth/token", body))
    token: str = response.json()["refresh_token"]
    return token


@pytest.mark.parametrize("name", ["bob", "scoped ann", "link"])
def test_of_many_who_spend_one_refresh_token_one_gets_the_next(world: World, name: str) -> None:
    token = refresh_token_of(world, name)
    for _ in range(3):
        body = {"refresh_token": token}
        answers = side_by_side(world, lambda client: client.post("/auth/refresh", body), 8)  # noqa: B023
        assert sorted(answer.status for answer in answers) == [200] + [401] * 7
        token = next(answer for answer in answers if answer.status == 200).json()["refresh_token"]


TOKEN_CHANGES: dict[str, Callable[[str], str]] = {
    "the next generation": lambda t: t.replace("_0_", "_1_"),
    "a huge generation": lambda t: t.replace("_0_", "_" + "9" * 16 + "_"),
    "a larger generation": lambda t: t.replace("_0_", "_" + "9" * 17 + "_"),
    "a negative generation": lambda t: t.replace("_0_", "_-1_"),
    "leading zeros": lambda t: t.replace("_0_", "_00_"),
    "other digits": lambda t: t.replace("_0_", "_\u0660_"),
    "the secret of the chain alone": lambda t: t[:-64] + "0" * 64,
    "the secret of the token alone": lambda t: t[:-128] + "0" * 64 + t[-64:],
    "the secrets in turn": lambda t: t[:-128] + t[-64:] + t[-128:-64],
    "capitals": lambda t: t.upper(),
    "of another chain": lambda t: "rt_" + "0" * 32 + t[35:],
    "blanks": lambda t: f" {t}",
    "twice": lambda t: t + t,
}


@pytest.mark.parametrize("route", ["/auth/refresh", "/auth/logout"])
@pytest.mark.parametrize("change", TOKEN_CHANGES)
def test_a_changed_refresh_token_is_refused_and_harms_nobody(
    world: World, chain: list[str], route: str, change: str
) -> None:
    changed = TOKEN_CHANGES[change](chain[-1])
    assert_refused(Caller(world, "x").ask("POST", route, {"refresh_token": changed}))


@pytest.fixture(scope="module")
def chain(world: World) -> Any:
    """A refresh token that is good at the end of all attempts."""
    tokens = [refresh_token_of(world, "bob")]
    yield tokens
    body = {"refresh_token": tokens[0]}
    assert Caller(world, "x").ask("POST", "/auth/refresh", body).status == 200


# -- rate limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    ["X-Forwarded-For", "X-Real-Ip", "Forwarded", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Via"],
)
@pytest.mark.parametrize(("route", "member"), [("/auth/token", "api_key"), ("/share/session", "key")])
def test_guessing_is_held_up_whatever_address_it_says_it_is_from(
    world: World, header: str, route: str, member: str
) -> None:
    if route == "/share/session":
        settings, plugin = {"failures": 5, "failures_window_s": 1}, "sharing"
    else:
        settings, plugin = {"login_failures": 5, "login_window_s": 1}, "auth.self"
    world.root.made("PUT", f"/system/plugins/{plugin}/configuration", settings)
    try:
        statuses = []
        for number in range(200):
            address = f"10.{number}.1.{number}"
            value = f"for={address}" if header == "Forwarded" else address
            body = {member: f"svc_k_{number:032x}_{0:064x}"}
            statuses.append(Caller(world, "x").ask("POST", route, body, {header: value}).status)
            if statuses[-1] == 429:
                break
        assert statuses[-1] == 429
        assert set(statuses[:-1]) <= {401}
    finally:
        if plugin == "auth.self":
            relaxed = {"login_failures": 100, "login_window_s": 1}
        else:
            relaxed = {"failures": 1000, "failures_window_s": 1}
        world.root.made("PUT", f"/system/plugins/{plugin}/configuration", relaxed)


# -- mailed links ----------------------------------------------------------------------------------

CODES = [
    "",
    "a",
    "A" * 43,
    "..",
    "%00",
    "' OR 1=1",
    "../../api-keys",
    "\u0661" * 43,
    "A" * 5000,
    "<script>x</script>",
    "*",
]


@pytest.mark.parametrize("accept", ["*/*", "text/html"])
@pytest.mark.parametrize("code", CODES, ids=lambda code: code[:20])
def test_a_guessed_code_gets_nothing_and_is_not_shown_as_markup(world: World, code: str, accept: str) -> None:
    target = f"/auth/magic-link/verify?{urlencode({'code': code})}"
    for more in ("", "&confirm=true"):
        response = Caller(world, "x").ask("GET", target + more, headers={"Accept": accept})
        assert response.status in (200, 400, 401), response.status
        assert b"<script" not in response.body.lower()
        assert b'"token"' not in response.body
        assert response.status != 200 or accept == "text/html"


def test_the_answer_to_a_request_for_a_link_is_the_same_for_everybody(world: World) -> None:
    world.make_user("mail@example.com")
    seen = set()
    for address in (
        "mail@example.com",
        "MAIL@example.com",
        "none@example.com",
        "root",
        "ann",
        "a@b\r\nBcc: x@y.z",
    ):
        response = Caller(world, "x").ask("POST", "/auth/magic-link", {"email": address})
        names = tuple(sorted(name for name in response.headers if name != "X-Request-Id"))
        seen.add((response.status, response.body, names))
    assert len(seen) == 1


def test_a_code_is_good_once_over_two_workers(world: World) -> None:
    world.make_user("once@example.com")
    assert Caller(world, "x").ask("POST", "/auth/magic-link", {"email": "once@example.com"}).status == 200
    deadline = time.monotonic() + 20
    while not (found := re.findall(r"verify\?code=([\w-]{43})", world.server.log_text())):
        assert time.monotonic() < deadline, world.server.log_text()[-2000:]
        time.sleep(0.05)
    targets = f"/auth/magic-link/verify?code={found[-1]}"
    answers = side_by_side(world, lambda client: client.get(targets), 8)
    assert sorted(answer.status for answer in answers) == [200] + [401] * 7


# -- links in a browser ----------------------------------------------------------------------------

EVIL_NAMES = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "' onmouseover='x",
    "{{7*7}}",
    "${7*7}",
    "a&lt;b",
    "%3Cscript%3E",
    "&#60;script&#62;",
]


@pytest.mark.parametrize("name", EVIL_NAMES)
def test_names_of_files_are_text_on_the_pages_of_links(world: World, name: str) -> None:
    world.put(f"/docs/open/names/{name.replace('/', '-')}/x.html", b"<script>1</script>")
    elements: list[tuple[str, list[str]]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            elements.append((tag, [key for key, _ in attributes]))
            hrefs = [value or "" for key, value in attributes if key in ("href", "src")]
            assert all(href.startswith("/share/") for href in hrefs), hrefs

    cookie = world.callers["cookie"]
    for target in (
        "/share/files/docs/open/names",
        "/share/files" + files(f"/docs/open/names/{name.replace('/', '-')}")[6:],
    ):
        response = cookie.ask("GET", target)
        assert response.status == 200
        Reader().feed(response.body.decode())
        assert "script-src" not in response["Content-Security-Policy"]
        assert "default-src 'none'" in response["Content-Security-Policy"]
    assert not {tag for tag, _ in elements} & {"script", "img", "iframe", "object", "form", "base"}
    assert not [key for _, keys in elements for key in keys if key.startswith("on")]
    stored = cookie.ask("GET", target + "/x.html")
    assert stored["Content-Disposition"].startswith("attachment")
    assert stored["Content-Security-Policy"].startswith("sandbox; default-src 'none'; ")


@pytest.mark.parametrize(
    "base_url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "//evil.example",
        "https://a@evil.example",
        "https://a.example?x=",
        "https://a.example#",
        "https://a.example\r\nX: y",
        "https://a.example/\u0000",
        "ftp://a.example",
        "https://",
        "https://[::1",
        "https://a.example:99999",
        "https://a b",
        "https://a\\@evil.example",
        "x" * 5000,
        "https://\u0430.example",
    ],
)
def test_a_link_begins_with_no_other_url(world: World, base_url: str) -> None:
    response = world.root.ask("POST", "/files/share-link", {"paths": ["/docs/open"], "base_url": base_url})
    assert response.status == 400, response.body
    assert b"svc_k_" not in response.body


@pytest.mark.parametrize(
    "text", ["a\r\nX-Evil: 1", "a\x00", "a\u2028b", "\u202e", "\ud800", "a" * 201, "\x7f", "\u0085"]
)
@pytest.mark.parametrize(
    ("route", "member"), [("/system/users", "username"), ("/system/groups", "name"), ("/auth/keys", "label")]
)
def test_names_with_what_is_not_printable_are_refused(
    world: World, route: str, member: str, text: str
) -> None:
    response = world.root.ask("POST", route, {member: text})
    assert response.status == 400, response.body
    assert "X-Evil" not in response


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/html", ""],
)
@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
def test_another_site_signs_nobody_in_by_a_form(world: World, content_type: str, origin: str) -> None:
    """What a page of another site can send without being asked for leave first sets no cookie."""
    body = json.dumps({"key": world.link["token"]}).encode()
    fields = {"Content-Type": content_type, "Origin": origin, "Sec-Fetch-Site": "cross-site"}
    response = until_let(lambda: Caller(world, "x").ask("POST", "/share/session", headers=fields, body=body))
    assert "Set-Cookie" not in response, response.headers.items()
    assert "Access-Control-Allow-Origin" not in response


def test_the_cookie_says_what_browsers_may_do_with_it(world: World) -> None:
    response = until_let(
        lambda: Caller(world, "x").ask("POST", "/share/session", {"key": world.link["token"]})
    )
    cookie = response["Set-Cookie"].lower()
    for word in ("httponly", "samesite=strict", "path=/share"):
        assert word in cookie


@pytest.mark.parametrize("name", ["bob", "ann", "scoped ann", "scoped root", "root"])
def test_no_key_but_that_of_a_link_makes_a_cookie(world: World, name: str) -> None:
    key = world.root.key if name == "root" else world.callers[name].key
    response = until_let(lambda: Caller(world, "x").ask("POST", "/share/session", {"key": key}))
    assert_refused(response)
    assert "Set-Cookie" not in response
