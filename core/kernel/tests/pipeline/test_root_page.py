"""``GET /``: a page for people and the same for programs, until a plugin serves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import falcon
from falcon.testing import TestClient

from svc import __version__
from svc.pipeline import Application, public
from svc.pipeline.root_page import is_documented, page
from svc.plugins import AuthContext, AuthMode, Credentials, Identity, Route

OpenApplication = Callable[[AuthMode, Callable[[Any], None]], Application]

HTML = "text/html,application/xhtml+xml,*/*;q=0.8"


class AnybodyMode(AuthMode):
    name = "anybody"

    def bind(self, _context: AuthContext) -> AuthMode:
        return self

    def authenticate(self, _credentials: Credentials) -> Identity | None:
        return None


def test_a_browser_is_told_what_this_is(anonymous: TestClient) -> None:
    answer = anonymous.simulate_get("/", headers={"Accept": HTML})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "keeps every version" in answer.text
    assert __version__ in answer.text
    assert 'href="/system/health"' in answer.text
    assert "accept" in answer.headers["vary"].lower()


def test_a_program_gets_json(anonymous: TestClient) -> None:
    answer = anonymous.simulate_get("/", headers={"Accept": "*/*"})
    assert answer.json == {"service": "svc", "version": __version__, "health": "/system/health"}
    assert anonymous.simulate_post("/").status_code == 405


def test_the_documentation_is_linked_where_it_is_served() -> None:
    other = Route("/docs/{path:path}", object(), None, "some.docs")
    assert is_documented([other])
    assert b'<a href="/docs/" rel="help">' in page(documented=True)


def test_a_plugin_may_serve_it_instead(open_application: OpenApplication) -> None:
    class Portal:
        @public
        def on_get(self, _req: falcon.Request, resp: falcon.Response) -> None:
            resp.text = "the portal"

    app = open_application(AnybodyMode(), lambda routes: routes.add("/", Portal()))
    assert TestClient(app).simulate_get("/", headers={"Accept": HTML}).text == "the portal"


def test_the_page_loads_nothing_and_tells_nobody_where_one_comes_from(anonymous: TestClient) -> None:
    headers = anonymous.simulate_get("/", headers={"Accept": "text/html"}).headers
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["referrer-policy"] == "no-referrer"
