"""Searching in a browser, while somebody types."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from svc_testing import Server, start_server

PLUGINS = ("files", "portal", "query", "index.exact", "index.trigram")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with start_server(tmp_path_factory.mktemp("search") / "search.svcdb", plugins=PLUGINS) as server:
        for name in ("whale.txt", "wheel.txt", "<b>while.txt"):
            assert server.request("PUT", f"/files/sea/{name}", body=name.encode()).status == 201
        yield server


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if "Security Policy" in said.text else None)
    yield page
    context.close()
    assert faults == []


def test_results_come_while_somebody_types(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/portal/search")
    page.get_by_label("Words").press_sequentially("wh", delay=10)
    links = page.locator("#results .hits a")
    expect(links).to_have_text(["/sea/<b>while.txt", "/sea/whale.txt", "/sea/wheel.txt"])
    expect(page.locator("#said")).to_contain_text("3 files")
    page.get_by_label("Words").press_sequentially("ee", delay=10)
    expect(links).to_have_text(["/sea/wheel.txt"])
    expect(page.get_by_label("Words")).to_be_focused()
    assert "q=whee" in page.url
    assert "typing" not in page.url
    page.reload()
    expect(links).to_have_text(["/sea/wheel.txt"])


def test_what_was_overtaken_is_given_up(server: Server, page: Page) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:  # a function of Python itself: Playwright marks what it calls
        held.append(route)

    failed: list[str] = []
    page.on("requestfailed", lambda request: failed.append(request.url))
    page.goto(f"{server.url}/portal/search")
    page.route("**/portal/search?q=wha&*", hold)
    page.get_by_label("Words").fill("wha")
    while not held:
        page.wait_for_timeout(10)
    page.get_by_label("Words").fill("wheel")
    expect(page.locator("#results .hits a")).to_have_text(["/sea/wheel.txt"])
    assert [url for url in failed if "q=wha&" in url]
