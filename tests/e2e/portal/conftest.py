"""A server with two workers and files, those who sign in at it, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from portal_pages import HOSTILE, HOSTILE_CONTENTS, MANY, Opener, Portal, kept_by_browser
from svc_blackbox.browser import running_chromium
from svc_testing import start_server

PLUGINS = ("users", "auth.self", "files", "history", "portal", "versions")


@pytest.fixture(scope="session")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    path = tmp_path_factory.mktemp("portal") / "portal.svcdb"
    options = ("--auth", "self-contained", "--workers", "2", "--access-log", "true")
    with start_server(path, *options, plugins=PLUGINS) as server:
        portal = Portal(server, next(word for word in server.output.split() if word.startswith("svc_k_")))
        portal.put({f"/many/file-{number:04}.txt": ("text/plain", f"{number}") for number in range(MANY)})
        portal.put({f"/hostile/{name}": ("text/plain", name) for name in HOSTILE})
        portal.put({f"/hostile/{name}": content for name, content in HOSTILE_CONTENTS.items()})
        portal.put(
            {"/shared/notes.txt": ("text/plain", "for all\n"), "/secret/diary.txt": ("text/plain", "x")}
        )
        yield portal
        assert [secret for secret in portal.secrets if secret in server.errors] == []


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with running_chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def as_root(browser: Browser, portal: Portal) -> Any:
    return kept_by_browser(browser, portal)


@pytest.fixture
def open_page(browser: Browser, portal: Portal) -> Iterator[Opener]:
    """Opens windows of their own. In none of them anything runs that was stored, or asks another host."""
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def open_page(state: Any = None, **options: Any) -> Page:
        context = browser.new_context(storage_state=state, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("dialog", lambda dialog: (faults.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if "Security Policy" in said.text else None)
        own = (f"{portal.url}/", "data:", "about:", "blob:", "chrome-extension:")
        context.on("request", lambda one: None if one.url.startswith(own) else faults.append(one.url))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []
