"""Pages of several plugins in a browser, at a server with two workers: search, what runs, and people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from portal_pages import HOSTILE, HOSTILE_CONTENTS, Opener, Portal, keep_picture, kept_by_browser, sign_in
from svc_testing import start_server

PLUGINS = (
    *("users", "auth.self", "sharing", "files", "events", "events.sse", "metrics", "tasks"),
    *("versions", "task.gc"),
    *("query", "index.exact", "index.trigram", "index.fulltext", "parsers", "portal"),
)
INDEXES = '{"glob": "**/*", "indexes": [{"name": "text", "type": "fulltext"}]}'
NAME = "/hostile/<img src=x onerror=alert(2)>.txt"
PAGES = {
    "search": "search?q=whale&explain=1",
    "search-names": "search?q=" + quote("<script>alert(1)"),
    "tasks": "tasks",
    "task": "tasks/new/gc",
    "schedules": "schedules",
    "metrics": "metrics",
    "events": "events",
    "state": "state",
    "people": "people",
    "groups": "groups",
    "group": "groups/staff",
    "access": "access" + quote(NAME) + "?user=ann",
    "keys": "keys",
    "links": "links",
    "share": "share" + quote(NAME),
}
RULES = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]
ROOTS = ("tasks", "schedules", "metrics", "people", "groups", "access/shared", "links", "share/shared")


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    path = tmp_path_factory.mktemp("people") / "people.svcdb"
    options = ("--auth", "self-contained", "--workers", "2", "--access-log", "true", "--background", "true")
    with start_server(path, *options, plugins=PLUGINS) as server:
        portal = Portal(server, next(word for word in server.output.split() if word.startswith("svc_k_")))
        portal.put({"/books/.svc-config/indexes.json": ("application/json", INDEXES)})
        portal.put({f"/books/{number:02}.txt": ("text/plain", "A whale.\n") for number in range(30)})
        portal.put({"/books/bad.txt": ("text/plain", "whale </mark><script>alert(1)</script>")})
        portal.put({f"/hostile/{name}": ("text/plain", name) for name in HOSTILE})
        portal.put({f"/hostile/{name}": content for name, content in HOSTILE_CONTENTS.items()})
        portal.user("ann", hostile="-r--l---")
        portal.send("POST", "/system/groups", {"name": "staff"})
        schedule = {"id": "nightly", "task_type": "gc", "schedule": "30 3 * * *"}
        portal.send("POST", "/system/cron", schedule)
        portal.secrets.append(portal.send("POST", "/files/share-link", {"paths": [NAME]})["token"])
        yield portal
        assert [secret for secret in portal.secrets if secret in server.errors] == []


@pytest.fixture(scope="module")
def as_root(browser: Browser, portal: Portal) -> Any:
    return kept_by_browser(browser, portal)


def go(page: Page, portal: Portal, where: str) -> None:
    answer = page.goto(f"{portal.url}/portal/{where}")
    assert answer is not None
    assert answer.status == 200, where


def follow(page: Page, button: str) -> None:
    with page.expect_navigation():
        page.get_by_role("button", name=button, exact=True).click()


def test_pages_are_for_everybody_and_what_is_stored_does_nothing_there(
    portal: Portal, as_root: Any, open_page: Opener
) -> None:
    page = open_page(as_root, color_scheme="light")
    for name, where in PAGES.items():
        go(page, portal, where)
        for width in (1400, 360):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            keep_picture(page, f"{name}-{width}-light")
        assert faults(page, {"runOnly": RULES}) == [], name
        page.emulate_media(color_scheme="dark")
        keep_picture(page, f"{name}-360-dark")
        assert faults(page, {"runOnly": {"type": "rule", "values": ["color-contrast"]}}) == [], name
        page.emulate_media(color_scheme="light")


def faults(page: Page, options: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """What axe finds: rules, and the elements that break them."""
    found = Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]


def test_a_task_is_followed_to_its_end(portal: Portal, as_root: Any, open_page: Opener) -> None:
    page = open_page(as_root)
    go(page, portal, "tasks/new/gc")
    page.get_by_label("dry_run").check()
    follow(page, "Start now")
    expect(page.locator("#live")).to_contain_text("completed", timeout=30_000)
    expect(page.locator("[data-live]")).to_have_count(0)


def test_events_appear_as_they_happen(portal: Portal, as_root: Any, open_page: Opener) -> None:
    page = open_page(as_root)
    go(page, portal, "events")
    expect(page.locator("#following")).to_contain_text("as they happen")
    portal.put({"/hostile/later <img src=x onerror=alert(9)>.txt": ("text/plain", "x")})
    row = page.locator("#events tr").first
    expect(row).to_contain_text("/hostile/later <img src=x onerror=alert(9)>.txt")


def test_pages_need_no_script(portal: Portal, as_root: Any, open_page: Opener) -> None:
    page = open_page(as_root, java_script_enabled=False)
    go(page, portal, "search")
    page.get_by_label("Words").fill("whale")
    follow(page, "Search")
    expect(page.locator("mark").first).to_have_text("whale")
    page.get_by_role("link", name="Next page").click()
    expect(page.get_by_role("link", name="First page")).to_be_visible()
    go(page, portal, "people")
    page.get_by_label("Name", exact=True).last.fill("bob")
    follow(page, "Add the user")
    expect(page.get_by_role("status")).to_contain_text("Made the user bob.")
    go(page, portal, "access/books")
    page.get_by_label("To a user").fill("bob")
    follow(page, "Grant")
    expect(page.get_by_role("status")).to_contain_text("Granted to bob.")
    follow(page, "Undo")
    expect(page.get_by_role("status")).to_contain_text("Took the grant of bob back.")
    go(page, portal, "share/books")
    follow(page, "Make the link")
    link = page.locator("pre code").inner_text()
    portal.secrets.append(link.rpartition("=")[2])
    assert link.startswith(f"{portal.url}/share#")
    go(page, portal, "events")
    expect(page.locator("#events")).to_contain_text("/hostile/")


def test_who_is_not_root_sees_none_of_what_is_roots(portal: Portal, open_page: Opener) -> None:
    key, _ = portal.user("eve", books="-r--l---")
    page = open_page()
    sign_in(page, portal, key)
    titles = page.get_by_role("navigation", name="Portal").get_by_role("link").all_inner_texts()
    assert titles == ["Files", "Shared with me", "Search", "Versions", "Keys", "Events", "State"]
    go(page, portal, "files/books")
    assert page.locator('a[href*="/portal/access"], a[href*="/portal/share/"]').count() == 0
    for where in ROOTS:
        answer = page.goto(f"{portal.url}/portal/{where}")
        assert answer is not None
        assert answer.status == 404, where
    for where in ("search?q=alert", "events", "state", "shared"):
        go(page, portal, where)
        assert "hostile" not in page.content(), where
    go(page, portal, "search?q=whale")
    expect(page.locator("#found")).to_contain_text("31 files")
