"""What the tests of the portal share: who asks a server, what is stored there, and how one signs in."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from email.message import Message
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Page

from svc_testing import Server

MANY = 2_500
HOSTILE = (
    "<script>alert(1)<\\u002fscript>.txt",
    "<img src=x onerror=alert(2)>.txt",
    '"><svg onload=alert(3)>.txt',
    "'-alert(4)-'.txt",
    "{{ 7 * 7 }}{% raw %}.txt",
    "javascript:alert(5)",
)
"""Names; the file of each holds the same as HTML, JSON, CSV, SVG and text do."""
HOSTILE_CONTENTS = {
    "page.html": ("text/html", "<script>parent.alert(6); alert(6)</script><img src=x onerror=alert(7)>"),
    "drawing.svg": ("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(8)'/>"),
    "data.json": ("application/json", '{"<script>alert(9)</script>": "</pre><script>alert(10)</script>"}'),
    "table.csv": ("text/csv", "<script>alert(11)</script>,b\n=1+1,<img src=x onerror=alert(12)>\n"),
    "text.md": ("text/markdown", "[x](javascript:alert(13)) </pre><script>alert(14)</script>"),
    "wrong.png": ("image/png", "<script>alert(15)</script>"),
    "type.bin": ('text/x-unknown; a="<script>alert(17)</script>"', "<script>alert(16)</script>"),
}
PICTURES = os.environ.get("SVC_TEST_PICTURES")
"""A directory where the pages are kept as pictures, for people to look at."""


class Answer(NamedTuple):
    """What a server has answered; header fields by name in any case."""

    status: int
    headers: Message
    cookies: dict[str, Any]
    body: bytes


class Portal:
    """A server, and root's key to it. ``secrets`` must be in no line of its log."""

    def __init__(self, server: Server, key: str) -> None:
        self.server = server
        self.url = server.url
        self.key = key
        self.secrets = [key]
        self.token = self.send("POST", "/auth/token", {"api_key": key}, token=None)["token"]

    def send(self, method: str, path: str, value: Any = None, *, token: str | None = "") -> Any:
        bearer = self.token if token == "" else token
        fields = {"Content-Type": "application/json"}
        if bearer is not None:
            fields["Authorization"] = f"Bearer {bearer}"
        body = None if value is None else json.dumps(value).encode()
        answer = self.server.request(method, path, body=body, headers=fields)
        assert answer.status < 300, answer.body
        return answer.json()

    def ask(self, method: str, path: str, body: str | None = None, **fields: str) -> Answer:
        """Sends a request as it is, follows no redirect, and returns the answer, whatever its status."""
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        connection = HTTPConnection("127.0.0.1", int(self.url.rpartition(":")[2]), timeout=30)
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            cookies = SimpleCookie()
            for value in answer.headers.get_all("set-cookie") or ():
                cookies.load(value)
            return Answer(answer.status, answer.headers, dict(cookies), answer.read())
        finally:
            connection.close()

    def put(self, files: dict[str, tuple[str, str]]) -> None:
        """Stores files: contents with their types by path."""
        operations = [
            {"op": "put", "path": path, "content": content, "content_type": content_type}
            for path, (content_type, content) in files.items()
        ]
        self.send("POST", "/files/batch", {"operations": operations})

    def user(self, name: str, **grants: str) -> tuple[str, str]:
        """Makes a user with rights by top directory; returns the text and the id of a key."""
        made = self.send("POST", "/system/users", {"username": name})
        for directory, flags in grants.items():
            grant = {"path": f"/{directory}", "group": f"user:{made['user_id']}", "allow": flags}
            self.send("POST", "/system/grants", grant)
        key = self.send("POST", "/auth/keys/admin", {"user_id": made["user_id"]})
        self.secrets.append(key["key"])
        return key["key"], key["key_id"]


Opener = Callable[..., Page]
"""Opens a window of its own; given what a browser keeps, and options of the window."""


def sign_in(page: Page, portal: Portal, key: str) -> None:
    page.goto(f"{portal.url}/portal/sign-in")
    page.get_by_label("Key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/portal/files/")
    portal.secrets += [cookie["value"] for cookie in page.context.cookies()]


def kept_by_browser(browser: Browser, portal: Portal) -> Any:
    """What a browser keeps in which root has signed in."""
    context = browser.new_context()
    sign_in(context.new_page(), portal, portal.key)
    state = context.storage_state()
    context.close()
    return state


def keep_picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)
