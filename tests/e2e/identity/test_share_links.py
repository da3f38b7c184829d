"""A link in a browser, at a server with two workers: opened, walked through, downloaded from, and ended."""

from __future__ import annotations

import base64
import io
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from portal_pages import Portal, keep_picture
from svc_blackbox.browser import running_chromium
from svc_blackbox.webm import make_webm, vp8_frame
from svc_testing import start_server

PLUGINS = ("users", "auth.self", "sharing", "files")
QUARTER = "Quarter 1 \u2013 r\u00e9sum\u00e9.csv"


class Owner(Portal):
    """Root, who makes links."""

    def write(self, path: str, content: bytes, content_type: str) -> None:
        fields = {"Content-Type": content_type, "Authorization": f"Bearer {self.token}"}
        assert self.server.request("PUT", f"/files{path}", body=content, headers=fields).status == 201

    def link(self, *paths: str) -> dict[str, Any]:
        body = {"paths": paths, "base_url": self.server.url}
        made: dict[str, Any] = self.send("POST", "/files/share-link", body)
        self.secrets.append(made["token"])
        return made


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owner]:
    path = tmp_path_factory.mktemp("links") / "links.svcdb"
    options = ("--auth", "self-contained", "--workers", "2")
    with start_server(path, *options, plugins=PLUGINS) as server:
        key = next(word for word in server.output.split() if word.startswith("svc_k_"))
        owner = Owner(server, key)
        owner.write("/plans/Overview.txt", b"All is well.\n", "text/plain")
        owner.write("/plans/page.html", b"<script>document.title = 'ran'</script>", "text/html")
        owner.write(
            "/plans/2026/Quarter%201%20%E2%80%93%20r%C3%A9sum%C3%A9.csv", b"a,b\n" * 40_000, "text/csv"
        )
        owner.write("/plans/large.bin", bytes(3_000_000), "application/octet-stream")
        owner.write("/secret/diary.txt", b"nobody's business", "text/plain")
        yield owner
        assert [secret for secret in owner.secrets if secret in server.errors] == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_chromium() as browser:
        yield browser


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(accept_downloads=True)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    # What the Content-Security-Policy forbids is an error on the console; failed requests are too.
    assert [text for text in complaints if "Content Security Policy" in text] == []


def open_link(page: Page, link: dict[str, Any]) -> None:
    page.goto(link["url"])
    page.wait_for_url("**/share/files/**")


def test_a_link_opens_lists_and_downloads_without_an_account(owner: Owner, page: Page) -> None:
    link = owner.link("/plans")
    open_link(page, link)
    assert page.title() == "plans"
    assert page.locator("tbody tr").count() == 4
    assert link["token"] not in page.url
    keep_picture(page, "directory")
    page.get_by_role("link", name="2026/", exact=True).click()
    assert page.locator("h1").inner_text() == "2026"
    with page.expect_download() as begun:
        page.get_by_role("link", name="Download").click()
    assert begun.value.suggested_filename == QUARTER
    assert Path(begun.value.path()).stat().st_size == 160_000
    page.get_by_role("link", name="plans", exact=True).click()
    page.get_by_role("link", name="Overview.txt", exact=True).click()
    assert page.locator("body").inner_text().strip() == "All is well."


def test_a_page_that_was_shared_does_not_run_and_scripts_cannot_read_the_cookie(
    owner: Owner, page: Page
) -> None:
    open_link(page, owner.link("/plans"))
    with page.expect_download() as begun:
        page.get_by_role("link", name="page.html", exact=True).click()
    assert begun.value.suggested_filename == "page.html"
    assert page.title() == "plans"
    cookie = next(cookie for cookie in page.context.cookies() if cookie["name"] == "svc_share")
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/share")
    assert page.evaluate("document.cookie") == ""


PICTURES_TO_FRAMES = """
() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 64;
  return Array.from({length: 20}, (_, second) => {
    const context = canvas.getContext("2d");
    context.fillStyle = `rgb(${second * 12}, 0, 0)`;
    context.fillRect(0, 0, 64, 64);
    return canvas.toDataURL("image/webp", 0.9).split(",")[1];
  });
}
"""
PLAYED = """
async () => {
  const player = document.querySelector("video");
  const ready = name => new Promise((done, failed) => {
    player.addEventListener(name, done, {once: true});
    setTimeout(() => failed(new Error(`no ${name}: ${player.error?.message ?? player.readyState}`)), 10000);
  });
  if (player.readyState < 1) await ready("loadedmetadata");
  const sought = ready("seeked");
  player.currentTime = player.duration * 0.75;
  await sought;
  return [Math.round(player.duration), player.videoWidth];
}
"""


def media_of(page: Page) -> dict[str, tuple[bytes, str]]:
    """A film and a sound of 20 seconds, a picture and a PDF."""
    pictures = [base64.b64decode(picture) for picture in page.evaluate(PICTURES_TO_FRAMES)]
    film = make_webm([vp8_frame(one) for one in pictures], frames_per_second=1, width=64, height=64)
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setparams((1, 1, 8_000, 0, "NONE", "none"))
        file.writeframes(bytes(range(256)) * 625)
    pdf = (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj "
        b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj "
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\ntrailer<</Root 1 0 R>>"
    )
    return {
        "film.webm": (film, "video/webm"),
        "sound.wav": (sound.getvalue(), "audio/wav"),
        "picture.webp": (pictures[9], "image/webp"),
        "paper.pdf": (pdf, "application/pdf"),
    }


def test_film_sound_picture_and_pdf_are_shown(owner: Owner, page: Page) -> None:
    page.goto(owner.server.url + "/share")
    for name, (content, content_type) in media_of(page).items():
        owner.write(f"/media/{name}", content, content_type)
    open_link(page, owner.link("/media"))
    directory = page.url
    for name, width in (("film.webm", 64), ("sound.wav", 0)):
        page.goto(f"{directory}/{name}")
        assert page.evaluate(PLAYED) == [20, width]
    page.goto(f"{directory}/picture.webp")
    assert page.evaluate("document.querySelector('img').naturalWidth") == 64
    page.goto(f"{directory}/paper.pdf")
    # Chromium's viewer is a frame of its own, and in it one of the file.
    for _ in range(100):
        if [frame.url for frame in page.frames[2:]] == [page.url]:
            return
        page.wait_for_timeout(50)
    raise AssertionError(page.frames)


def test_several_paths_begin_with_a_list_of_them(owner: Owner, page: Page) -> None:
    open_link(page, owner.link("/plans/2026", "/plans/Overview.txt"))
    assert page.title() == "Shared files"
    assert page.locator("tbody td.name").all_inner_texts() == ["2026/", "Overview.txt"]
    keep_picture(page, "several")
    assert page.goto(f"{owner.server.url}/share/files/secret").status == 404
    assert page.locator("h1").inner_text() == "There is nothing here"
    keep_picture(page, "nothing")
    page.get_by_role("link", name="Back to the shared files").click()
    assert page.title() == "Shared files"


def test_an_ended_link_says_so_and_so_does_every_page_that_was_open(owner: Owner, page: Page) -> None:
    link = owner.link("/plans")
    open_link(page, link)
    owner.send("DELETE", f"/files/share-links/{link['key_id']}")
    # Whichever worker answers.
    for _ in range(10):
        answer = page.reload()
        assert answer is not None
        assert answer.status == 401
    assert page.locator("h1").inner_text() == "This link does not work any more"
    keep_picture(page, "ended")
    page.goto("about:blank")
    page.goto(link["url"])
    page.get_by_text("does not work any more").wait_for()
    keep_picture(page, "refused")


def test_an_address_without_a_key_asks_for_the_whole_link(owner: Owner, page: Page) -> None:
    page.goto(f"{owner.server.url}/share")
    page.get_by_text("not complete").wait_for()
    # Whoever pastes the rest then gets on, in the same window.
    page.goto(owner.link("/plans")["url"])
    page.wait_for_url("**/share/files/plans")


def test_only_the_first_page_needs_a_script(owner: Owner, browser: Browser) -> None:
    with browser.new_context() as with_script:
        page = with_script.new_page()
        open_link(page, owner.link("/plans"))
        cookies = with_script.cookies()
    with browser.new_context(java_script_enabled=False) as without_script:
        without_script.add_cookies(cookies)
        page = without_script.new_page()
        page.goto(f"{owner.server.url}/share/files/plans")
        assert page.locator("tbody tr").count() == 4
        page.goto(f"{owner.server.url}/share")
        assert "needs JavaScript" in page.locator("noscript").inner_html()


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (360, "dark"), (1000, "dark")])
def test_it_fits_a_narrow_screen_and_follows_the_dark_scheme(
    owner: Owner, browser: Browser, width: int, scheme: Any
) -> None:
    with browser.new_context(viewport={"width": width, "height": 700}, color_scheme=scheme) as context:
        page = context.new_page()
        open_link(page, owner.link("/plans"))
        page.goto(f"{owner.server.url}/share/files/plans/2026")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (back == "rgb(20, 23, 28)") == (scheme == "dark")
        keep_picture(page, f"{scheme}-{width}")
