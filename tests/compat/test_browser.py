"""A browser plays a video from svc, jumps in it by requests for ranges, and listens to events."""

from __future__ import annotations

import base64
import contextlib
import http.client
import itertools
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, Response

from svc.database import Database
from svc_blackbox.browser import running_chromium
from svc_blackbox.client import Client, files
from svc_blackbox.server import Server, free_port
from svc_blackbox.webm import make_webm, vp8_frame

SECONDS, FRAMES_PER_SECOND, SIDE = 40, 10, 320


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, shared_server: Server) -> Iterator[Page]:
    """A page of the server's own origin, whose scripts may do what its policy forbids them."""
    page = browser.new_page(bypass_csp=True)
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


# One pixel, and a second of silence.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc000"
    "0003010100c9fe92ef0000000049454e44ae426082"
)
WAV = bytes.fromhex(
    "52494646a43e000057415645666d74201000000001000100401f0000803e00000200100064617461803e0000"
) + bytes(16_000)
STORED_PAGE = b"""<!doctype html><title>stored</title><style>p { color: rgb(1, 2, 3) }</style>
<p>text</p><img src="dot.png"><script>document.title = "it ran"</script>"""


@pytest.fixture
def plain_page(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A page as people have it, and what its console says."""
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    yield page, said
    page.close()


def test_pictures_and_sounds_open_in_a_window_of_their_own(
    plain_page: tuple[Page, list[str]], shared_server: Server, http: Client, area: str
) -> None:
    page, said = plain_page
    http.store(f"{area}/dot.png", PNG)
    http.store(f"{area}/tone.wav", WAV)
    page.goto(shared_server.url + files(f"{area}/dot.png"))
    assert page.evaluate("document.images[0].naturalWidth") == 1
    page.goto(shared_server.url + files(f"{area}/tone.wav"))
    page.wait_for_function("document.querySelector('video, audio').readyState > 0", timeout=20_000)
    assert said == []


def test_a_stored_page_shows_its_styles_and_pictures_and_runs_no_script(
    plain_page: tuple[Page, list[str]], shared_server: Server, http: Client, area: str
) -> None:
    page, said = plain_page
    http.store(f"{area}/dot.png", PNG)
    http.store(f"{area}/page.html", STORED_PAGE)
    page.goto(shared_server.url + files(f"{area}/page.html"))
    assert page.title() == "stored"
    assert page.evaluate("document.images[0].naturalWidth") == 1
    assert page.evaluate("getComputedStyle(document.querySelector('p')).color") == "rgb(1, 2, 3)"
    assert page.evaluate("self.origin") == "null"
    assert any("script" in text for text in said)


LISTEN = """
() => {
  window.seen = [];
  const source = new EventSource("/system/events?events=entries_created,entries_deleted,server_ready");
  const note = event => window.seen.push([event.type, event.lastEventId, JSON.parse(event.data).payload]);
  for (const name of ["entries_created", "entries_deleted", "server_ready", "gap"]) {
    source.addEventListener(name, note);
  }
}
"""


def test_an_event_source_misses_nothing_over_restarts(
    browser: Browser, new_server: Callable[..., Server]
) -> None:
    """Files are stored before, during and after a stop and a kill, and while nothing listens."""
    server = new_server("events", "--workers", "2", "--port", str(free_port()))
    page = browser.new_page(bypass_csp=True)
    page.goto(server.url + "/system/health")
    begun = head_of(server)
    page.evaluate(LISTEN)
    page.wait_for_function("() => window.seen.length == 1")
    for number, end in enumerate((server.stop, server.kill)):
        with writing(server, f"/{number}"):
            page.wait_for_function("count => window.seen.length >= count", arg=3 + 5 * number)
            end()
        with Database(server.database) as database, database.transaction() as changes:
            changes.put((f"between-{number}",), b"x")
        server.start()
        page.wait_for_function(
            "count => seen.filter(([t]) => t == 'server_ready').length == count", arg=2 + number
        )
        with writing(server, f"/again-{number}"):
            time.sleep(0.3)
    with Client(server.url) as client:
        client.store("/files/last", b"x")
    page.wait_for_function("() => JSON.stringify(window.seen.at(-1)).includes('/last')")
    events = [one for one in page.evaluate("() => window.seen") if one[0] != "server_ready"]
    page.close()
    ids = [event_id for _, event_id, _ in events]
    assert ids == sorted(set(ids))
    found = [(kind, entry["path"]) for kind, _, payload in events for entry in payload["entries"]]
    with Database(server.database, read_only=True) as database:
        expected = [
            ("entries_created", "/" + "/".join(change.path))
            for commit in database.commits(begun)
            for record in commit.transactions
            for change in record.changes
            if not change.system
        ]
    assert len(expected) > 20
    assert found == expected


def head_of(server: Server) -> int:
    with Database(server.database, read_only=True) as database:
        return database.head().sequence


@contextlib.contextmanager
def writing(server: Server, prefix: str) -> Iterator[None]:
    """Stores one file after another meanwhile; what is refused or not answered doesn't matter."""
    is_over = threading.Event()
    url = server.url

    def work() -> None:
        for number in itertools.count():
            if is_over.is_set():
                return
            with (
                contextlib.suppress(OSError, http.client.HTTPException, AssertionError),
                Client(url) as client,
            ):
                client.request("PUT", f"/files{prefix}-{number}", b"x")
            time.sleep(0.01)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    is_over.set()
    thread.join()
