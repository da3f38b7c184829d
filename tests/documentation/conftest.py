"""The pages as they are packaged, built if ``tox -e docs`` has not just done so, and a server of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from svc_blackbox.browser import running_chromium
from svc_testing import Server, start_server

expect.set_options(timeout=20_000)  # the page of operations has a megabyte of script

ROOT = Path(__file__).parents[2]
BUILDING = ROOT / "plugins" / "docs" / "building" / "build_pages.py"
PAGES = ROOT / "plugins" / "docs" / "src" / "svc_docs" / "pages"
PLUGINS = ("users", "auth.self", "files", "versions", "docs")
PICTURES = os.environ.get("SVC_TEST_PICTURES")
"""A directory where the pages are kept as pictures, for people to look at."""


class Documented(NamedTuple):
    server: Server
    key: str
    plugins: tuple[str, ...]


@pytest.fixture(scope="session")
def pages() -> Path:
    done = subprocess.run(
        [sys.executable, str(BUILDING), "--if-changed"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return PAGES


@pytest.fixture(scope="module")
def documented(pages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Documented]:
    """A server with the pages and few other plugins."""
    path = tmp_path_factory.mktemp("documented") / "x.svcdb"
    with start_server(path, "--auth", "self-contained", plugins=PLUGINS) as server:
        key = next(word for word in server.output.split() if word.startswith("svc_k_"))
        yield Documented(server, key, PLUGINS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_chromium() as browser:
        yield browser


@pytest.fixture(params=[360, 1400])
def context(
    browser: Browser, documented: Documented, request: pytest.FixtureRequest
) -> Iterator[BrowserContext]:
    """A window of a telephone's width, and one of a desk's. No page asks another host for anything."""
    context = browser.new_context(viewport={"width": request.param, "height": 900})
    asked: list[str] = []
    context.on("request", lambda one: asked.append(one.url))
    yield context
    context.close()
    assert asked
    others = [url for url in asked if not url.startswith((documented.server.url + "/", "data:"))]
    assert others == []


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page about which the console has nothing to say, its policy included."""
    page = context.new_page()
    page.set_default_timeout(10_000)
    complaints: list[str] = []
    page.on(
        "console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    assert complaints == []
