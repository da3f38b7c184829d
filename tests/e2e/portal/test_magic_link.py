"""Signing in at the portal by a link."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from portal_pages import Portal
from svc_testing import start_server

ADDRESS = "ann@example.com"
LINK = re.compile(r"/portal/sign-in\?code=[\w-]{43}")
PLUGINS = ("users", "auth.self", "auth.magic-link", "files", "portal")


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    path = tmp_path_factory.mktemp("link") / "link.svcdb"
    options = ("--auth", "self-contained", "--log-magic-links", "true")
    with start_server(path, *options, plugins=PLUGINS) as server:
        portal = Portal(server, next(word for word in server.output.split() if word.startswith("svc_k_")))
        portal.user(ADDRESS)
        yield portal


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


def ask(page: Page, portal: Portal, address: str) -> str:
    page.goto(f"{portal.url}/portal/sign-in")
    page.get_by_label("Mail address").fill(address)
    page.get_by_role("button", name="Send me a link").click()
    return page.locator(".message p").inner_text()


def wait_for_link(page: Page, portal: Portal, known: int) -> str:
    while len(LINK.findall(portal.server.errors)) <= known:
        page.wait_for_timeout(20)
    return portal.url + LINK.findall(portal.server.errors)[-1]


def test_a_link_signs_in_once_where_somebody_presses_the_button(portal: Portal, page: Page) -> None:
    known = len(LINK.findall(portal.server.errors))
    told = ask(page, portal, ADDRESS)
    assert told == ask(page, portal, "nobody@example.com")
    link = wait_for_link(page, portal, known)
    for _ in range(2):  # as a scanner of mail does
        page.goto(link)
    page.get_by_role("button", name="Sign in by the link").click()
    expect(page.locator(".who")).to_have_text(ADDRESS)
    names = {cookie["name"] for cookie in page.context.cookies()}
    assert {"svc_session", "svc_renewal"} <= names
    # The session renews itself as that of a key does.
    page.context.clear_cookies(name="svc_session")
    page.goto(f"{portal.url}/portal/files/")
    expect(page.locator(".who")).to_have_text(ADDRESS)
    page.get_by_role("button", name="Sign out").click()
    page.goto(link)
    page.get_by_role("button", name="Sign in by the link").click()
    expect(page.get_by_role("alert")).to_contain_text("The code is not valid")
    assert page.locator(".who").count() == 0


def test_too_many_requests_are_refused_there(portal: Portal, page: Page) -> None:
    for _ in range(5):
        ask(page, portal, "often@example.com")
    assert "At most 5 links" in ask(page, portal, "often@example.com")
