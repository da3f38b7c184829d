"""The pages in a browser: read, searched, and tried, at a telephone's and at a desk's width."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from documentation.conftest import PICTURES, Documented

pytestmark = pytest.mark.timeout(400)
"""Whoever comes first may have to build the pages."""


DRAWINGS = Path(__file__).parents[2] / "docs" / "drawings"


def keep_picture(page: Page, name: str) -> None:
    if PICTURES and page.viewport_size:
        page.screenshot(path=Path(PICTURES) / f"{name}-{page.viewport_size['width']}.png")


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_the_front_page_leads_to_the_others(documented: Documented, page: Page) -> None:
    answer = page.goto(f"{documented.server.url}/docs")
    assert answer is not None
    assert answer.url == f"{documented.server.url}/docs/"
    assert page.locator("h1").first.inner_text().startswith("svc")
    assert fits(page)
    keep_picture(page, "front")
    page.get_by_role("main").get_by_role("link", name="Query language").click()
    expect(page).to_have_url(f"{documented.server.url}/docs/query-language.html")
    # What the theme's own script has done: it runs although the policy allows nothing but itself.
    expect(page.locator("body")).to_have_attribute("data-theme", "auto")
    assert (
        page.locator("symbol").first.evaluate("one => getComputedStyle(one.closest('svg')).display") == "none"
    )


def test_drawings_are_shown_in_the_colours_of_the_page(documented: Documented, page: Page) -> None:
    drawn = {path.stem for path in DRAWINGS.glob("*.dot")}
    shown = set(
        re.findall(
            r"\{drawing\} \S*?drawings/(\w+)\.dot",
            "".join(map(Path.read_text, DRAWINGS.parent.rglob("*.md"))),
        )
    )
    assert drawn == shown
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(f"{documented.server.url}/docs/concepts.html")
        pictures = page.locator("figure.drawing svg[role=img]")
        assert pictures.count() == 4
        assert pictures.first.evaluate("svg => svg.getBBox().width > 100 && svg.clientHeight > 50")
        assert (
            pictures.first.locator("title").text_content()
            == "The log of two writes, and the directory beside it."
        )
        text, ground = page.evaluate(
            "() => [getComputedStyle(document.querySelector('figure.drawing text')).fill,"
            " getComputedStyle(document.body).backgroundColor]"
        )
        assert text != ground
        keep_picture(page, f"concepts-{scheme}")


def test_a_search_finds_pages_without_any_other_host(documented: Documented, page: Page) -> None:
    page.goto(f"{documented.server.url}/docs/search.html?q=compare-and-swap")
    found = page.locator("#search-results ul.search li a")
    expect(found.first).to_be_visible()
    expect(page.locator("#search-results p.context").first).to_be_attached()
    keep_picture(page, "search")
    assert any("/docs/http/" in one.evaluate("one => one.href") for one in found.all())
    found.first.click()
    page.wait_for_selector("article h1")


def test_a_page_says_that_this_server_does_not_use_its_plugin(documented: Documented, page: Page) -> None:
    page.goto(f"{documented.server.url}/docs/http/metrics.html")
    note = page.get_by_role("note").first
    assert "metrics" in note.inner_text()
    assert fits(page)
    keep_picture(page, "note")
    page.goto(f"{documented.server.url}/docs/http/files.html")
    assert page.get_by_role("note").filter(has_text="Not on this server").count() == 0
    keep_picture(page, "files")


def test_the_page_of_operations_lists_them(documented: Documented, page: Page) -> None:
    page.goto(f"{documented.server.url}/docs/api")
    expect(page.get_by_role("link", name="versions", exact=True)).to_be_visible()
    assert fits(page)
    keep_picture(page, "operations")


@pytest.mark.parametrize("context", [1400], indirect=True)
def test_the_page_of_operations_tries_one_with_a_key(documented: Documented, page: Page) -> None:
    page.goto(f"{documented.server.url}/docs/api")
    page.get_by_role("button", name="Authorize").click()
    page.get_by_label("auth-bearer-value").fill(documented.key)
    keep_picture(page, "signing-in")
    page.get_by_role("button", name="Apply credentials").click()
    page.get_by_role("button", name="Close").click()
    page.locator("#operations-tag-svc").click()
    operation = page.locator(".opblock").filter(has_text="/system/whoami")
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Execute").click()
    answer = operation.locator(".live-responses-table .response")
    expect(answer.locator(".response-col_status")).to_contain_text("200")
    expect(answer).to_contain_text('"is_root"')
    keep_picture(page, "tried")
    # The key itself was sent to /auth/token alone; the command that is shown has the token.
    assert documented.key not in operation.inner_text()
    assert re.search(r"Bearer eyJ", operation.locator(".curl").inner_text())
