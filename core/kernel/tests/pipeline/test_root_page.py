"""``GET /``: a page for people and the same for programs, until a plugin serves it."""

from __future__ import annotations

from falcon.testing import TestClient

from svc import __version__
from svc.pipeline.root_page import with_root_page
from svc.plugins import Route

HTML = "text/html,application/xhtml+xml,*/*;q=0.8"


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
    root = with_root_page([other])[-1].resource
    assert root._documented
    assert b'<a href="/docs/" rel="help">' in root._page


def test_a_plugin_may_serve_it_instead() -> None:
    portal = Route("/", object(), None, "some.portal")
    assert list(with_root_page([portal])) == [portal]


def test_the_page_loads_nothing_and_tells_nobody_where_one_comes_from(anonymous: TestClient) -> None:
    headers = anonymous.simulate_get("/", headers={"Accept": "text/html"}).headers
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["referrer-policy"] == "no-referrer"
