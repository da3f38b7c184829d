"""The pages of files in a browser: what they show, what they do, and what stored files can't make them do."""

from __future__ import annotations

import zipfile
from typing import Any
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from portal_pages import HOSTILE, HOSTILE_CONTENTS, MANY, Opener, Portal, keep_picture, sign_in


def message_of(page: Page) -> str:
    return page.locator(".message p").inner_text()


def test_a_large_directory_is_browsed_without_a_script(
    portal: Portal, as_root: Any, open_page: Opener
) -> None:
    page = open_page(as_root, java_script_enabled=False)
    page.goto(f"{portal.url}/portal/files/many")
    assert page.get_by_text(f"{MANY:,} entries").count() == 1
    names: list[str] = []
    while True:
        names += page.locator("tbody th a").all_text_contents()
        following = page.get_by_role("link", name="Next page")
        if not following.count():
            break
        following.click()
        page.wait_for_load_state()
    assert names == [f"file-{number:04}.txt" for number in range(MANY)]
    page.get_by_role("link", name="First page").click()
    page.get_by_label("Filter by name").fill("-249")
    page.get_by_role("button", name="Filter").click()
    assert page.locator("tbody th a").all_inner_texts() == [f"file-249{number}.txt" for number in range(10)]
    page.get_by_label("Filter by name").fill("file-?00[12].*")
    page.get_by_role("button", name="Filter").click()
    assert page.locator("tbody tr").count() == 6
    page.get_by_role("link", name="Size").click()
    assert page.locator("tbody th a").first.inner_text() == "file-1001.txt"


def test_everything_can_be_done_and_taken_back(portal: Portal, as_root: Any, open_page: Opener) -> None:
    page = open_page(as_root)
    page.goto(f"{portal.url}/portal/files/work")
    assert page.locator("h1").inner_text() == "This did not work"
    page.goto(f"{portal.url}/portal/files/")
    page.get_by_label("Name of the new directory").fill("work")
    page.get_by_role("button", name="Make directory").click()
    assert message_of(page) == "Made the directory work."
    page.get_by_role("link", name="work/", exact=True).click()
    chosen = [
        {"name": name, "mimeType": "text/plain", "buffer": f"in {name}".encode()}
        for name in ("ä 1%.txt", "b.txt")
    ]
    expect(page.locator("#upload")).to_be_visible()  # its script runs
    page.get_by_label("Upload files").set_input_files(chosen)  # type: ignore[arg-type]
    expect(page.locator("tbody tr")).to_have_count(2)

    page.get_by_label("Rename b.txt").click()
    page.get_by_label("New name").fill("c <b>.txt")
    page.get_by_role("button", name="Rename").click()
    assert message_of(page) == "Renamed b.txt to c <b>.txt."
    assert page.locator("tbody th a").all_inner_texts() == ["c <b>.txt", "ä 1%.txt"]
    page.get_by_role("button", name="Undo").click()
    assert page.locator("tbody th a").all_inner_texts() == ["b.txt", "ä 1%.txt"]

    page.get_by_label("Select all").check()
    page.get_by_role("button", name="Delete").click()
    assert message_of(page) == "Deleted 2 entries."
    assert page.get_by_text("This directory is empty.").count() == 1
    page.get_by_role("button", name="Undo").click()
    assert page.locator("tbody tr").count() == 2

    for doing, done in (("Copy", "Copied"), ("Move", "Moved")):
        page.get_by_label("Select b.txt").check()
        page.get_by_role("button", name=doing).click()
        page.get_by_label("Into the directory").fill("/work/copies")
        page.get_by_role("button", name=doing).click()
        assert message_of(page) == f"{done} b.txt to /work/copies."
        page.get_by_role("button", name="Undo").click()
        assert "error" not in (page.locator(".message").get_attribute("class") or "")
        assert page.get_by_role("link", name="b.txt", exact=True).count() == 1

    page.get_by_label("Select b.txt").check()
    page.get_by_label("Select copies").check()
    with page.expect_download() as begun:
        page.get_by_role("button", name="Download ZIP").click()
    with zipfile.ZipFile(begun.value.path()) as archive:
        assert sorted(archive.namelist()) == ["b.txt", "copies/"]

    page.get_by_role("link", name="ä 1%.txt", exact=True).click()
    assert page.locator("pre").inner_text() == "in ä 1%.txt"
    with page.expect_download() as begun:
        page.get_by_role("link", name="Download").click()
    assert begun.value.suggested_filename == "ä 1%.txt"
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/portal/files/work")
    assert message_of(page) == "Deleted ä 1%.txt."
    # What can't be done is said where it was asked.
    page.get_by_label("Rename b.txt").click()
    page.get_by_label("New name").fill("copies")
    page.get_by_role("button", name="Rename").click()
    assert "error" in (page.locator(".message").get_attribute("class") or "")


def test_an_upload_goes_on_when_the_token_has_ended(portal: Portal, open_page: Opener) -> None:
    page = open_page()
    sign_in(page, portal, portal.key)
    page.goto(f"{portal.url}/portal/files/shared")
    page.context.clear_cookies(name="svc_session")
    content = {"name": "late.txt", "mimeType": "text/plain", "buffer": b"late"}
    expect(page.locator("#upload")).to_be_visible()
    page.get_by_label("Upload files").set_input_files([content])  # type: ignore[list-item]
    expect(page.get_by_role("link", name="late.txt", exact=True)).to_be_visible()


def test_stored_names_and_contents_do_nothing(portal: Portal, as_root: Any, open_page: Opener) -> None:
    page = open_page(as_root)
    for query in ("", "?name=<script>alert(20)</script>", '?sort="><script>alert(21)</script>'):
        page.goto(f"{portal.url}/portal/files/hostile{query}")
        page.wait_for_load_state("networkidle")
    page.goto(f"{portal.url}/portal/files/hostile")
    shown = page.locator("tbody th a").all_inner_texts()
    assert set(shown) == {*HOSTILE, *HOSTILE_CONTENTS}
    keep_picture(page, "hostile")
    for name in (*HOSTILE, *HOSTILE_CONTENTS):
        page.goto(f"{portal.url}/portal/files/hostile/{quote(name)}")
        assert page.locator("h1").inner_text() == name
        page.goto(f"{portal.url}/portal/files/hostile/{quote(name)}?do=rename")
        page.get_by_role("button", name="Rename").click()  # to the name that it has: an error, with the name
    for name in SHOWN:
        page.goto(f"{portal.url}/files/hostile/{quote(name)}")
    page.goto(f"{portal.url}/portal/files/hostile")
    page.get_by_label("Select all").check()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Undo").click()
    assert page.locator("tbody tr").count() == len(shown)


def test_forms_need_no_script(portal: Portal, as_root: Any, open_page: Opener) -> None:
    page = open_page(as_root, java_script_enabled=False)
    page.goto(f"{portal.url}/portal/files/shared/notes.txt")
    assert page.locator("pre").inner_text() == "for all\n"
    page.get_by_role("link", name="Rename").click()
    page.get_by_label("New name").fill("other.txt")
    page.get_by_role("button", name="Rename").click()
    assert message_of(page) == "Renamed notes.txt to other.txt."
    page.get_by_role("button", name="Undo").click()
    assert message_of(page) == "Moved other.txt back."


def test_who_has_one_grant_sees_nothing_else(portal: Portal, open_page: Opener) -> None:
    key, _ = portal.user("reader", shared="-r--l---")
    page = open_page()
    sign_in(page, portal, key)
    assert page.locator("tbody th a").all_inner_texts() == ["shared"]
    refused = page.goto(f"{portal.url}/portal/files/secret/diary.txt")
    content = page.content()
    missing = page.goto(f"{portal.url}/portal/files/secret/nothing.txt")
    assert refused is not None
    assert missing is not None
    assert (refused.status, missing.status) == (404, 404)
    assert page.content() == content
    page.goto(f"{portal.url}/portal/files/shared")
    assert not page.get_by_label("Name of the new directory").count()
    page.goto(f"{portal.url}/portal/files/shared/notes.txt")
    assert not page.get_by_role("button", name="Delete").count()
    page.goto(f"{portal.url}/portal/state")
    assert "Database" not in page.locator("main").inner_text()


SHOWN = ("page.html", "drawing.svg", "data.json", HOSTILE[0])
"""What a browser shows by itself, in a sandbox; all else it saves."""
AXE = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}
PAGES = {
    "directory": "/portal/files/many?name=-000",
    "hostile": "/portal/files/hostile",
    "text": "/portal/files/hostile/text.md",
    "tree": "/portal/files/hostile/data.json",
    "code": "/portal/files/hostile/page.html",
    "table": "/portal/files/hostile/table.csv",
    "form": "/portal/files/hostile/table.csv?do=move",
    "missing": "/portal/files/nothing",
    "state": "/portal/state",
    "sign-in": "/portal/sign-in",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_for_everybody(portal: Portal, as_root: Any, open_page: Opener, scheme: Any) -> None:
    """WCAG 2.2 AA as far as a program can tell; nothing is wider than the window of a telephone."""
    page = open_page(as_root, color_scheme=scheme)
    for name, path in PAGES.items():
        if name == "sign-in":
            page.context.clear_cookies()
        page.goto(portal.url + path)
        for width in (1400, 360):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            keep_picture(page, f"{name}-{width}-{scheme}")
        options = {
            "resultTypes": ["violations"],
            "runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"],
        }
        found = Axe().run(page, options=options).response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == [], name
