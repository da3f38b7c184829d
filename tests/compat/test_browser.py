"""A browser plays a video from svc, and jumps in it, which takes requests for ranges."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Response, sync_playwright

from svc_blackbox.client import Client, files
from svc_blackbox.server import Server
from svc_blackbox.webm import make_webm, vp8_frame

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECONDS, FRAMES_PER_SECOND, SIDE = 40, 10, 320


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    assert program, "chromium is not installed: run python tests/system_packages.py"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, shared_server: Server) -> Iterator[Page]:
    """A page of the server's own origin."""
    page = browser.new_page()
    page.goto(shared_server.url + "/system/health")
    yield page
    page.close()


PICTURES = """
async ([count, side]) => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = side;
  const context = canvas.getContext("2d");
  const pictures = [];
  for (let number = 0; number < count; number++) {
    const noise = context.createImageData(side, side);
    for (let i = 0; i < noise.data.length; i++) noise.data[i] = i % 4 == 3 ? 255 : Math.random() * 256;
    context.putImageData(noise, 0, 0);
    context.fillStyle = `rgb(${number * 6}, ${255 - number * 6}, 128)`;
    context.fillRect(0, 0, side / 2, side / 2);
    pictures.push(canvas.toDataURL("image/webp", 0.9).split(",")[1]);
  }
  return pictures;
}
"""
"""Draws one picture a second: noise makes the file large, the colour of a square tells the second."""

PLAY = """
async ([url, time]) => {
  const video = window.video ??= document.createElement("video");
  video.preload = "metadata";
  const once = name => new Promise((done, failed) => {
    video.addEventListener(name, done, {once: true});
    video.addEventListener("error", () => failed(new Error(video.error.message)), {once: true});
    setTimeout(() => failed(new Error(`no ${name} event; state ${video.readyState}`)), 20000);
  });
  if (!video.src) {
    const ready = once("loadedmetadata");
    video.src = url;
    await ready;
  }
  const arrived = once("seeked");
  video.currentTime = time;
  await arrived;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = video.videoWidth;
  const context = canvas.getContext("2d");
  context.drawImage(video, 0, 0);
  return [video.duration, video.videoWidth, ...context.getImageData(50, 50, 1, 1).data];
}
"""


def test_a_video_is_played_and_sought_by_ranges(
    page: Page, shared_server: Server, http: Client, area: str
) -> None:
    pictures = page.evaluate(PICTURES, [SECONDS, SIDE])
    frames = [vp8_frame(base64.b64decode(picture)) for picture in pictures for _ in range(FRAMES_PER_SECOND)]
    video = make_webm(frames, frames_per_second=FRAMES_PER_SECOND, width=SIDE, height=SIDE)
    assert len(video) > 8 << 20
    stored = http.store(f"{area}/film.webm", video)
    assert stored["content_type"] == "video/webm"
    answers: list[Response] = []

    def collect(answer: Response) -> None:
        answers.append(answer)

    page.on("response", collect)
    for second in (0.5, 35.5, 12.5):
        duration, width, red, green, blue, _ = page.evaluate(PLAY, [files(f"{area}/film.webm"), second])
        assert (duration, width) == (SECONDS, SIDE)
        expected = int(second) * 6, 255 - int(second) * 6, 128
        assert all(abs(a - b) < 25 for a, b in zip((red, green, blue), expected, strict=True))
    ranges = [
        answer.headers.get("content-range", "") for answer in answers if answer.url.endswith("/film.webm")
    ]
    assert any(answer.status == 206 for answer in answers)
    starts = {int(text.split()[1].split("-")[0]) for text in ranges if text}
    assert max(starts) > len(video) // 4, ranges


def test_a_page_reads_and_writes_with_fetch(page: Page, http: Client, area: str) -> None:
    script = """
    async path => {
      const first = await fetch(path, {method: "PUT", body: "from a page", headers: {"If-None-Match": "*"}});
      const second = await fetch(path, {method: "PUT", body: "again", headers: {"If-None-Match": "*"}});
      const read = await fetch(path);
      const code = (await second.json()).code;
      return [first.status, second.status, code, await read.text(), read.headers.get("ETag")];
    }
    """
    first, second, code, text, etag = page.evaluate(script, files(f"{area}/note"))
    assert (first, second, code, text) == (201, 412, "PRECONDITION_FAILED", "from a page")
    assert etag == http.head(files(f"{area}/note"))["ETag"]
