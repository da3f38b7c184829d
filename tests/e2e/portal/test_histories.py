"""The pages of histories, of the past and of versions, in a browser."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from portal_pages import HOSTILE, Opener, Portal, keep_picture, sign_in

TEXTS = (
    "A story\nof a hare\nand a tortoise\nwho ran\n",
    "A story\nof a quick hare\nand a tortoise\nwho ran\na race\n",
    "A story\nof a quick hare and <b>a tortoise</b>\nwho ran\na race\nand slept\n",
)
PIXELS = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
)
AXE = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"],
}


@pytest.fixture(scope="module")
def past(portal: Portal) -> dict[str, Any]:
    """What happened: three versions of everything, a fork that conflicts, and names that are code."""
    versions = []
    for number, text in enumerate(TEXTS):
        files = {"/time/story.txt": ("text/plain", text), f"/time/{number}.txt": ("text/plain", "x")}
        versions.append(put(portal, files))
        portal.server.request(
            "PUT",
            "/files/time/pixel.png",
            body=base64.b64decode(PIXELS[number % 2]),
            headers={"Content-Type": "image/png", "Authorization": f"Bearer {portal.token}"},
        )
        put(portal, {f"/time/{name}": ("text/plain", f"{name} {number}") for name in HOSTILE})
        if number == 0:
            portal.send("POST", "/versions/snapshots", {"name": "beginning"})
            portal.send("POST", "/versions/forks", {"name": "other end"})
            for name in HOSTILE:
                portal.send("POST", "/versions/forks", {"name": f"{name} fork", "base": "beginning"})
    put(portal, {"/time/story.txt": ("text/plain", "The end\n")}, "?fork=other%20end")
    for name in HOSTILE[:3]:
        put(portal, {f"/time/{name}": ("text/plain", name)})
        portal.send("POST", "/versions/snapshots", {"name": name})
    portal.send("DELETE", "/files/time/0.txt")
    return {"versions": versions}


def put(portal: Portal, files: dict[str, tuple[str, str]], query: str = "") -> str:
    operations = [
        {"op": "put", "path": path, "content": content, "content_type": content_type}
        for path, (content_type, content) in files.items()
    ]
    return str(portal.send("POST", f"/files/batch{query}", {"operations": operations})["version"])


def message_of(page: Page) -> str:
    return page.locator(".message p").first.inner_text()


def test_a_file_is_compared_and_restored(
    portal: Portal, past: dict[str, Any], as_root: Any, open_page: Opener
) -> None:
    page = open_page(as_root)
    page.goto(f"{portal.url}/portal/files/time/story.txt")
    page.get_by_role("link", name="History").click()
    assert page.locator("tbody tr").count() == 3
    assert page.locator(".timeline line").count() == 3
    page.get_by_role("button", name="Compare").click()
    assert page.locator("mark").all_inner_texts() == [" and <b>a tortoise</b>"]
    page.go_back()
    page.get_by_role("link", name="Restore").last.click()
    expect(page.locator(".beside .new").first).to_be_visible()
    page.get_by_role("button", name="Restore").click()
    assert "Restored story.txt" in message_of(page)
    raw = f"{portal.url}/portal/files/time/story.txt"
    page.get_by_role("button", name="Undo").click()
    assert "Restored story.txt from pre-restore-" in message_of(page)
    page.goto(raw)
    assert page.locator("pre").inner_text() == TEXTS[2]
    page.get_by_role("link", name="Blame").click()
    assert page.locator("tbody tr").count() == 5
    assert page.locator("tbody tr.begins").count() == 4


def test_pictures_stand_beside_each_other(
    portal: Portal, past: dict[str, Any], as_root: Any, open_page: Opener
) -> None:
    page = open_page(as_root)
    page.goto(f"{portal.url}/portal/compare/time/pixel.png?from=beginning&to=HEAD")
    page.goto(f"{portal.url}/portal/compare/time/pixel.png?from={past['versions'][1]}&to=HEAD")
    assert page.locator("img").count() == 4
    for picture in page.locator("img").all():
        expect(picture).to_have_js_property("complete", True)
        expect(picture).to_have_js_property("naturalWidth", 1)
    keep_picture(page, "pictures")
    # Over each other, by how much the slider says.
    upper = page.locator(".over .upper")
    expect(upper).to_have_css("clip-path", "inset(0px 0px 0px 50%)")
    page.get_by_label("Over each other").press("End")
    expect(upper).to_have_css("clip-path", "inset(0px 0px 0px 100%)")


def test_the_past_is_browsed_without_script(
    portal: Portal, past: dict[str, Any], as_root: Any, open_page: Opener
) -> None:
    page = open_page(as_root, java_script_enabled=False)
    page.goto(f"{portal.url}/portal/files/time")
    page.get_by_role("link", name="As of a time").click()
    page.get_by_label("How long ago").fill("0")
    page.get_by_role("button", name="Go back").click()
    assert page.get_by_role("link", name="1.txt").count() == 1
    page.get_by_label("How long ago").fill("9")
    page.get_by_role("button", name="Go back").click()
    assert "Nothing was here then" in page.get_by_role("alert").inner_text()
    page.get_by_label("At a time").fill("2999-01-01T00:00")
    page.get_by_role("button", name="Show").click()
    assert not page.get_by_role("link", name="0.txt").count()
    page.goto(f"{portal.url}/portal/history/time")
    page.get_by_role("link", name="Look").last.click()
    assert page.locator("tbody th a").all_inner_texts() == ["0.txt", "story.txt"]
    page.get_by_role("link", name="story.txt").click()
    assert page.locator("pre").inner_text() == TEXTS[0]
    page.get_by_role("link", name="As it is now").click()
    assert page.locator("pre").inner_text() == TEXTS[2]
    page.goto(f"{portal.url}/portal/files/time")
    page.get_by_role("link", name="Deleted files").click()
    page.get_by_label("Select /time/0.txt").check()
    page.get_by_role("button", name="Restore").click()
    assert message_of(page) == "Restored /time/0.txt."
    page.get_by_role("button", name="Undo").click()
    assert message_of(page) == "Deleted 0.txt."


def test_forks_are_merged_with_a_choice(
    portal: Portal, past: dict[str, Any], as_root: Any, open_page: Opener
) -> None:
    page = open_page(as_root, java_script_enabled=False)
    page.goto(f"{portal.url}/portal/versions")
    page.get_by_role("link", name="Forks").click()
    page.get_by_role("link", name="other end").click()
    page.get_by_role("button", name="See what it would do").click()
    assert page.locator("h2").inner_text() == "/time/story.txt content differs"
    assert page.locator(".conflict pre").first.inner_text() == TEXTS[0]
    keep_picture(page, "conflicts")
    page.get_by_role("link", name="Compare both").click()
    assert page.locator(".line.new").first.inner_text().endswith("The end")
    page.go_back()
    page.get_by_role("button", name="Merge as chosen").click()
    assert "resolve them" in message_of(page)
    page.get_by_label("the text below").check()
    page.get_by_text("Edit the text").click()
    page.get_by_label("Text of /time/story.txt").fill("Both ends\n")
    page.get_by_role("button", name="Merge as chosen").click()
    assert message_of(page).startswith("Merged forks/other end into HEAD: 0 added, 1 modified")
    merged = portal.ask("GET", "/files/time/story.txt", Authorization=f"Bearer {portal.token}")
    assert merged.body == b"Both ends\n"
    page.get_by_role("button", name="Undo").click()
    assert "All files are again as in the snapshot" in message_of(page)
    page.get_by_role("link", name="beginning").click()
    page.get_by_role("link", name="Restore").click()
    page.get_by_role("button", name="Restore beginning").click()
    page.get_by_role("button", name="Undo").click()
    page.goto(f"{portal.url}/portal/files/time/story.txt")
    assert page.locator("pre").inner_text() == TEXTS[2]


def test_names_do_nothing(portal: Portal, past: dict[str, Any], as_root: Any, open_page: Opener) -> None:
    page = open_page(as_root)
    for path in ("log", "history/time", "versions", "versions/forks", "blame/time", "deleted/time"):
        page.goto(f"{portal.url}/portal/{path}")
        page.wait_for_load_state("networkidle")
    for kind, first in (("versions/forks", "fork"), ("versions", "")):
        page.goto(f"{portal.url}/portal/{kind}")
        links = [one.get_attribute("href") for one in page.locator("tbody th a").all()]
        assert len(links) >= 3, first
        for link in links:
            assert page.goto(f"{portal.url}{link}").status == 200  # type: ignore[union-attr]
    page.goto(f"{portal.url}/portal/files/time")
    for name in HOSTILE:
        page.goto(f"{portal.url}/portal/files/time")
        page.get_by_role("link", name=name, exact=True).click()
        page.get_by_role("link", name="History").click()
        assert page.locator("h1").inner_text() == f"History of {name}"
        page.get_by_role("button", name="Compare").click()
        assert page.locator(".line.old").count() == 1
    payload = '"><script>alert(40)</script>'
    for url in ("compare/time?from={}", "versions?name={}", "versions/merge?from={}", "past/time?at={}"):
        page.goto(f"{portal.url}/portal/{url.format(payload)}")


def test_who_has_one_grant_sees_its_history_alone(
    portal: Portal, past: dict[str, Any], open_page: Opener
) -> None:
    key, _ = portal.user("historian", time="-r--l---")
    page = open_page()
    sign_in(page, portal, key)
    page.goto(f"{portal.url}/portal/log")
    assert "secret" not in page.content()
    assert page.locator("tbody tr").count() >= 3
    for path in ("history/secret", "history/secret/diary.txt", "blame/secret/diary.txt", "deleted/secret"):
        answer = page.goto(f"{portal.url}/portal/{path}")
        assert answer is not None
        assert answer.status == 404, path
    page.goto(f"{portal.url}/portal/history/time/story.txt")
    assert not page.get_by_role("link", name="Restore").count()
    assert page.get_by_role("link", name="Look").count() >= 3
    page.goto(f"{portal.url}/portal/past/time?version={past['versions'][0]}")
    # What is gone is not for those who may not delete.
    assert page.locator("tbody th a").all_inner_texts() == ["story.txt"]


PAGES = {
    "history": "/portal/history/time/story.txt",
    "history-directory": "/portal/history/time",
    "history-snapshots": "/portal/history/time?over=snapshots",
    "compare": "/portal/compare/time/story.txt?from=HEAD&to=beginning",
    "compare-directory": "/portal/compare/time?from=beginning&to=HEAD",
    "blame": "/portal/blame/time/story.txt",
    "blame-directory": "/portal/blame/time",
    "log": "/portal/log?fork=other end",
    "commit": "/portal/commits/HEAD",
    "past": "/portal/past/time?at=2999-01-01",
    "past-file": "/portal/past/time/story.txt?at=2999-01-01",
    "deleted": "/portal/deleted/time",
    "snapshots": "/portal/versions",
    "snapshot": "/portal/versions/snapshot?name=beginning",
    "forks": "/portal/versions/forks",
    "fork": "/portal/versions/fork?name=other end",
    "merge": "/portal/versions/merge?from=forks/other end",
}


IN_DARK = ("history", "compare", "blame", "log", "merge")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_for_everybody(
    portal: Portal, past: dict[str, Any], as_root: Any, open_page: Opener, scheme: Any
) -> None:
    """WCAG 2.2 AA as far as a program can tell; nothing is wider than the window of a telephone."""
    page = open_page(as_root, color_scheme=scheme)
    for name in PAGES if scheme == "light" else IN_DARK:
        answer = page.goto(portal.url + PAGES[name])
        assert answer is not None
        assert answer.status == 200, name
        for width in (1400, 360):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            keep_picture(page, f"{name}-{width}-{scheme}")
        found = Axe().run(page, options=AXE).response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == [], name
