"""Uploads in a browser: folders, interruptions, and what is not sent again."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from blake3 import blake3
from playwright.sync_api import Browser, Error, Page, Request, Route, expect

from svc_testing import Server, free_port, start_server

SIZE = 12 * 1024 * 1024
DONE_MS = 300_000
CHUNKS = "**/blobs/chunks/**"


class Restartable:
    """A server that may be stopped and come back at the same address."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.port = free_port()
        self.stack = ExitStack()
        self.url = f"http://127.0.0.1:{self.port}"
        self.server = self.start()

    def start(self) -> Server:
        started = start_server(self.path, "--port", str(self.port), plugins=("files", "portal"))
        self.server = self.stack.enter_context(started)
        return self.server

    def make_directory(self, path: str) -> None:
        fields = {"Content-Type": "application/json"}
        body = f'{{"path": "{path}", "exist_ok": true}}'.encode()
        assert self.server.request("POST", "/files/mkdir", body=body, headers=fields).status < 300

    def hash_of(self, path: str) -> str:
        answer = self.server.request("HEAD", f"/files{path}")
        return answer.headers.get("x-svc-content-hash", "") if answer.status == 200 else ""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restartable]:
    served = Restartable(tmp_path_factory.mktemp("uploads") / "uploads.svcdb")
    with served.stack:
        yield served


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A window; whatever its policy forbids, or a script gets wrong, fails the test."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(10_000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if "Security Policy" in said.text else None)
    yield page
    context.close()
    assert faults == []


class Sent:
    """The chunks that a page has sent, and that were taken."""

    def __init__(self, page: Page) -> None:
        self.bytes = 0
        page.on("requestfinished", self._count)

    def _count(self, request: Request) -> None:
        if "/blobs/chunks/" in request.url:
            self.bytes += len(request.post_data_buffer or b"")


def open_directory(page: Page, served: Restartable, path: str) -> None:
    served.make_directory(f"/{path}")
    page.goto(f"{served.url}/portal/files/{path}")
    expect(page.locator("#upload")).to_be_visible()


def said(page: Page) -> str:
    done = page.locator("[data-part=done]")
    expect(done).not_to_be_empty(timeout=DONE_MS)
    return done.inner_text()


class Gate:
    """Lets so many chunks of a page through, and holds the others until it is opened."""

    def __init__(self, page: Page, chunks: int) -> None:
        self.page, self.left = page, chunks
        self.held: list[Route] = []
        page.route(CHUNKS, self._take)

    def _take(self, route: Route) -> None:
        self.left -= 1
        if self.left >= 0:
            route.continue_()
        else:
            self.held.append(route)

    def wait_until_held(self) -> None:
        while not self.held:
            self.page.wait_for_timeout(10)

    def open(self) -> None:
        self.left = 2**30
        for route in self.held:
            with suppress(Error):  # the page has given this one up
                route.continue_()
        self.page.unroute(CHUNKS)


def random_file(path: Path, size: int, seed: int) -> str:
    source, hasher = random.Random(seed), blake3()
    with path.open("wb") as file:
        for start in range(0, size, 2**20):
            piece = source.randbytes(min(2**20, size - start))
            hasher.update(piece)
            file.write(piece)
    return hasher.hexdigest()


def test_a_folder_is_uploaded_whole_and_taken_back(served: Restartable, page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "photos ä 1%"
    (folder / "deep" / "er").mkdir(parents=True)
    names = [f"{number:03}.txt" for number in range(120)]
    for name in names:
        (folder / name).write_text(f"in {name}")
    (folder / "deep" / "er" / "<b>.txt").write_text("far down")
    (folder / "empty.txt").touch()
    open_directory(page, served, "folder")
    page.get_by_label("Upload a folder").set_input_files(folder)
    assert said(page) == "Uploaded 122 files."
    expect(page.locator("tbody tr")).to_have_count(1)
    assert (
        served.hash_of("/folder/photos%20%C3%A4%201%25/deep/er/%3Cb%3E.txt")
        == blake3(b"far down").hexdigest()
    )
    assert served.hash_of("/folder/photos%20%C3%A4%201%25/empty.txt") == blake3(b"").hexdigest()
    page.get_by_role("button", name="Undo the upload").click()
    expect(page.get_by_text("The upload was taken back.")).to_be_visible()
    assert page.get_by_text("This directory is empty.").count() == 1
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("tbody tr")).to_have_count(1)


def test_what_replaced_a_file_is_taken_back(served: Restartable, page: Page, tmp_path: Path) -> None:
    served.server.request("PUT", "/files/replaced/note.txt", body=b"before")
    (tmp_path / "note.txt").write_text("after")
    open_directory(page, served, "replaced")
    page.get_by_label("Upload files").set_input_files(tmp_path / "note.txt")
    assert said(page) == "Uploaded 1 file. 1 of them replaced one."
    assert served.hash_of("/replaced/note.txt") == blake3(b"after").hexdigest()
    page.get_by_role("button", name="Undo the upload").click()
    expect(page.get_by_text("The upload was taken back.")).to_be_visible()
    assert served.hash_of("/replaced/note.txt") == blake3(b"before").hexdigest()


def test_an_upload_outlasts_a_restart_and_costs_nothing_twice(
    served: Restartable, page: Page, tmp_path: Path
) -> None:
    size = int(os.environ.get("SVC_TEST_UPLOAD_BYTES", SIZE))
    known = random_file(tmp_path / "large.bin", size, 1)
    sent = Sent(page)
    open_directory(page, served, "twice")
    gate = Gate(page, 20)
    page.get_by_label("Upload files").set_input_files(tmp_path / "large.bin")
    gate.wait_until_held()
    served.server.stop()
    gate.open()
    expect(page.get_by_text("The connection is lost.")).to_be_visible()
    served.start()
    assert said(page) == "Uploaded 1 file."
    assert served.hash_of("/twice/large.bin") == known
    first = sent.bytes
    # What the server had of it before the restart was not sent again, but for what was under way.
    assert size <= first < size + 2 * 2**20

    # The same file again, and under another name.
    sent.bytes = 0
    page.get_by_label("Upload files").set_input_files(tmp_path / "large.bin")
    expect(page.locator("[data-part=done]")).to_have_text(
        "Uploaded 1 file. 1 of them was there already.", timeout=DONE_MS
    )
    (tmp_path / "large.bin").rename(tmp_path / "other.bin")
    page.get_by_label("Upload files").set_input_files(tmp_path / "other.bin")
    expect(page.locator("tbody tr")).to_have_count(2, timeout=DONE_MS)
    assert served.hash_of("/twice/other.bin") == known
    print(f"sent {first:,} bytes of {size:,}; {sent.bytes:,} the second time")
    assert sent.bytes == 0


@pytest.mark.parametrize("end", ["resumed", "closed"])
def test_a_pause_and_a_closed_tab_lose_nothing(
    served: Restartable, page: Page, tmp_path: Path, end: str
) -> None:
    known = random_file(tmp_path / "large.bin", SIZE, len(end))
    sent = Sent(page)
    open_directory(page, served, end)
    gate = Gate(page, 20)
    page.get_by_label("Upload files").set_input_files(tmp_path / "large.bin")
    gate.wait_until_held()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    half = sent.bytes
    assert half < SIZE
    if end == "resumed":
        gate.open()
        page.get_by_role("button", name="Resume").click()
        assert said(page) == "Uploaded 1 file."
        assert sent.bytes <= SIZE + 2**20
        assert served.hash_of(f"/{end}/large.bin") == known
        return
    other = page.context.new_page()
    page.close(run_before_unload=False)
    again = Sent(other)
    open_directory(other, served, end)
    other.get_by_label("Upload files").set_input_files(tmp_path / "large.bin")
    assert said(other) == "Uploaded 1 file."
    assert served.hash_of(f"/{end}/large.bin") == known
    assert again.bytes <= SIZE - half + 2**20


DROP = """
() => {
  const file = (name, text) => ({ isFile: true, fullPath: name,
    file: (take) => take(new File([text], name.split("/").pop())) });
  const folder = (name, ...parts) => ({ isFile: false, fullPath: name,
    createReader: () => ({ readEntries: (take) => take(parts.splice(0, 1)) }) });
  const entries = [file("/one.txt", "1"),
    folder("/box", file("/box/two.txt", "2"), folder("/box/in", file("/box/in/three.txt", "3")))];
  const event = new Event("drop", { bubbles: true, cancelable: true });
  event.dataTransfer = { items: entries.map((entry) => ({ webkitGetAsEntry: () => entry })), files: [] };
  document.body.dispatchEvent(event);
}
"""


def test_folders_are_dropped(served: Restartable, page: Page) -> None:
    open_directory(page, served, "sub")
    page.evaluate(DROP)
    assert said(page) == "Uploaded 3 files."
    assert served.hash_of("/sub/box/in/three.txt") == blake3(b"3").hexdigest()
    assert served.hash_of("/sub/one.txt") == blake3(b"1").hexdigest()


def test_what_is_refused_is_said_beside_the_file(served: Restartable, page: Page, tmp_path: Path) -> None:
    served.make_directory("/refused/taken.txt")
    for name in ("taken.txt", "good.txt"):
        (tmp_path / name).write_text(name)
    open_directory(page, served, "refused")
    page.get_by_label("Upload files").set_input_files([tmp_path / "taken.txt", tmp_path / "good.txt"])
    assert said(page) == "Uploaded 1 file. 1 failed."
    assert page.locator("#uploads .failed").inner_text().startswith("taken.txt")
    assert served.hash_of("/refused/good.txt") == blake3(b"good.txt").hexdigest()


def test_a_form_uploads_without_a_script(served: Restartable, browser: Browser, tmp_path: Path) -> None:
    for name in ("ä <b>.txt", "b.bin"):
        (tmp_path / name).write_bytes(name.encode() + bytes(range(256)))
    served.make_directory("/form")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{served.url}/portal/files/form")
    page.get_by_label("Upload files, up to 8 MiB").set_input_files(
        [tmp_path / "ä <b>.txt", tmp_path / "b.bin"]
    )
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.locator(".message p")).to_have_text("Uploaded 2 entries.")
    assert served.hash_of("/form/b.bin") == blake3((tmp_path / "b.bin").read_bytes()).hexdigest()
    assert served.hash_of("/form/%C3%A4%20%3Cb%3E.txt") != ""
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("This directory is empty.")).to_be_visible()
    # It replaces nothing, and is small.
    served.server.request("PUT", "/files/form/b.bin", body=b"mine")
    page.get_by_label("Upload files, up to 8 MiB").set_input_files(tmp_path / "b.bin")
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.locator(".message.error")).to_be_visible()
    (tmp_path / "b.bin").write_bytes(bytes(9 * 2**20))
    page.get_by_label("Upload files, up to 8 MiB").set_input_files(tmp_path / "b.bin")
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.locator("h1")).to_have_text("This did not work")
    assert served.hash_of("/form/b.bin") == blake3(b"mine").hexdigest()
    context.close()
