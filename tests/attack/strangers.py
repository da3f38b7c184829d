"""A server with users, keys and a link, and the strangers who try more than they may.

What nobody but root may see is made of marks: texts, names, hashes and sizes that stand nowhere else. An
answer to anybody else that holds a mark has told too much, whatever its status.
"""

from __future__ import annotations

import base64
import io
import json
import re
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from blake3 import blake3

from svc_blackbox.client import Client, Response, files
from svc_blackbox.server import Server, free_port

__all__ = [
    "HIDDEN",
    "MISSING",
    "SECRET",
    "Caller",
    "World",
    "assert_refused",
    "marks_in",
    "open_empty_world",
    "open_world",
    "side_by_side",
    "target_of",
    "until_let",
]

SECRET = b"mark-of-the-secret " * 419
"""7,961 bytes: the size is a mark as well."""

GONE = b"mark-of-what-is-gone " * 11
HIDDEN = "/private/hidden.txt"
MISSING = "/private/absent.txt"
_SECRET_HASH = blake3(SECRET).hexdigest()
_MARKS = (
    b"mark-",
    b"mark%2D",
    _SECRET_HASH.encode(),
    blake3(GONE).hexdigest().encode(),
)
# A number of its own: hashes and times hold these four digits by chance.
_SIZE = re.compile(rf"(?<![0-9A-Za-z]){len(SECRET)}(?![0-9A-Za-z])".encode())
_ROOT_KEY = re.compile(r"svc_k_[0-9a-f]{32}_[0-9a-f]{64}")


def marks_in(response: Response, asked: str = "") -> list[bytes]:
    """Returns the marks that an answer holds, in its head, its body, in what is packed in it.

    Those that were asked for are left out: errors repeat them.
    """
    head = "\n".join(f"{name}: {value}" for name, value in response.headers.items()).encode()
    body = response.body
    if body[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            body += b"\n".join(name.encode() + archive.read(name) for name in archive.namelist())
    for text in re.findall(rb'"([A-Za-z0-9+/]{40,}={0,2})"', body):
        body += base64.b64decode(text + b"=" * (-len(text) % 4))
    told = head + b"\n" + body
    marks = [mark for mark in _MARKS if mark in told] + _SIZE.findall(told)
    return [mark for mark in marks if mark.decode() not in asked]


@dataclass
class Caller:
    """Somebody at the server: with a token, with a cookie, or with nothing.

    Attributes:
        name: what the tests call them.
        token: the access token, if they have one.
        cookie: of the pages of links, if they have one.
        key: the API key that the token is from.
        user_id: who it is, if it is a user.
    """

    world: World
    name: str
    token: str | None = None
    cookie: str | None = None
    key: str = ""
    user_id: str = ""

    def fields(self) -> dict[str, str]:
        fields = {}
        if self.token is not None:
            fields["Authorization"] = f"Bearer {self.token}"
        if self.cookie is not None:
            fields["Cookie"] = f"svc_share={self.cookie}"
        return fields

    def ask(
        self,
        method: str,
        target: str,
        value: Any = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Response:
        """Sends one request; a value goes as JSON."""
        fields = {**self.fields(), **(headers or {})}
        if value is not None:
            body = json.dumps(value).encode()
            fields.setdefault("Content-Type", "application/json")
        return self.world.client.request(method, target, body, fields)

    def made(self, method: str, target: str, value: Any = None) -> Any:
        """Sends one request that succeeds; returns its JSON."""
        response = self.ask(method, target, value)
        assert response.status < 300, (target, response.status, response.body[:500])
        return response.json()


@dataclass
class World:
    """A server with two workers, and who is there.

    Attributes:
        server: the server.
        client: one connection to it.
        root: by the first key.
        callers: the others, by name.
        secrets: keys that were made, which no log may hold.
        link: the answer that made the link to ``/docs/open``.
    """

    server: Server
    client: Client
    root: Caller = field(init=False)
    callers: dict[str, Caller] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    link: dict[str, Any] = field(default_factory=dict)

    def sign_in(self, name: str, key: str, user_id: str = "") -> Caller:
        """Exchanges a key for a caller."""
        self.secrets.append(key)
        made = Caller(self, name).made("POST", "/auth/token", {"api_key": key, "refresh": False})
        return Caller(self, name, made["token"], key=key, user_id=user_id)

    def make_user(self, name: str) -> Caller:
        """Makes a user with a key, and signs in by it."""
        user_id = self.root.made("POST", "/system/users", {"username": name})["user_id"]
        return self.make_key(name, user_id)

    def make_key(self, name: str, user_id: str, rules: list[dict[str, str]] | None = None) -> Caller:
        """Makes a key of a user, and signs in by it."""
        body = {"user_id": user_id, "rules": rules or [], "label": name}
        return self.sign_in(name, self.root.made("POST", "/auth/keys", body)["key"], user_id)

    def grant(self, path: str, group: str, allow: str, pattern: str | None = None) -> dict[str, Any]:
        """Makes a grant."""
        body = {"path": path, "group": group, "allow": allow, "deny": "--------", "path_pattern": pattern}
        made: dict[str, Any] = self.root.made("POST", "/system/grants", body)
        return made

    def put(self, path: str, content: bytes) -> None:
        """Stores a file as root."""
        response = self.root.ask("PUT", files(path), body=content)
        assert response.status in (200, 201), response.body


def open_world(directory: Path) -> World:
    """Starts the server and makes who and what is there."""
    world = open_empty_world(directory)
    _plant(world)
    _people(world)
    return world


def open_empty_world(directory: Path) -> World:
    """Starts a server that has nothing but its root user."""
    database = directory / "world.svcdb"
    server = Server(database)
    options = ["--workers", "2", "--log-magic-links", "true", "--magic-link-base-url", "https://x.example"]
    server.start_with("-D", str(database), "--port", str(free_port()), *options)
    world = World(server, server.client())
    key = next(found[0] for line in server.printed if (found := _ROOT_KEY.search(line)))
    world.root = world.sign_in("root", key)
    # The strangers fail at logins hundreds of times before the limits are what is tried out.
    _configure(world, login_failures=100, login_window_s=1)
    return world


def _configure(world: World, **settings: int) -> None:
    world.root.made("PUT", "/system/plugins/auth.self/configuration", settings)


def _plant(world: World) -> None:
    world.put("/docs/open/a.txt", b"open a\n")
    world.put("/docs/open/sub/b.txt", b"open b\n")
    world.put("/docs/closed/mark-c.txt", SECRET)
    world.put(HIDDEN, SECRET)
    world.put("/private/mark-name.txt", b"mark-")
    world.put("/private/mark-gone.txt", GONE)
    world.root.made("POST", "/version/snapshot", {"name": "old", "metadata": {}})
    world.root.made("DELETE", files("/private/mark-gone.txt"))
    world.root.made("POST", "/version/fork", {"name": "side"})
    world.root.ask("PUT", files("/private/mark-of-the-fork.txt") + "?fork=side", body=SECRET)
    for name, target in (("out", HIDDEN), ("up", "/private"), ("over", "/docs/closed")):
        world.root.made("PUT", f"/links/docs/open/{name}", {"target": target})


def _people(world: World) -> None:
    ann = world.make_user("ann")
    group = f"user:{ann.user_id}"
    world.grant("/docs/open", group, "crudlify")
    scoped = [{"/docs/open/**": "crudlify"}]
    link = {"paths": ["/docs/open"], "base_url": "https://files.example.org"}
    world.link = world.root.made("POST", "/files/share-link", link)
    callers = [
        Caller(world, "nobody"),
        world.make_user("bob"),
        ann,
        world.make_key("scoped ann", ann.user_id, scoped),
        world.make_key("scoped root", "00000000-0000-0000-0000-000000000000", scoped),
        world.sign_in("link", world.link["token"]),
    ]
    session = Caller(world, "").ask("POST", "/share/session", {"key": world.link["token"]})
    cookie = session["Set-Cookie"].partition(";")[0].partition("=")[2]
    callers.append(Caller(world, "cookie", cookie=cookie))
    world.callers.update({caller.name: caller for caller in callers})


def target_of(route: str, path: str) -> str:
    """A route with a path in it, as a URL has it."""
    return route.replace("{path}", quote(path.lstrip("/"), safe="/"))


def until_let(ask: Callable[[], Response], seconds: float = 30) -> Response:
    """Asks until the answer is another than that too many have failed."""
    deadline = time.monotonic() + seconds
    while (response := ask()).status == 429 and time.monotonic() < deadline:
        time.sleep(0.1)
    return response


def assert_refused(response: Response, status: int = 401) -> None:
    assert response.status == status, (response.status, response.body[:300])
    assert response.json()["code"] == "AUTH_REQUIRED"
    assert "bearer" in response["WWW-Authenticate"].lower()


def side_by_side(world: World, ask: Callable[[Client], Response], count: int) -> list[Response]:
    """Asks by several connections at once, so that both workers are asked."""
    start, answers, lock = threading.Barrier(count), [], threading.Lock()

    def go() -> None:
        with Client(world.server.url) as client:
            start.wait()
            answer = ask(client)
        with lock:
            answers.append(answer)

    threads = [threading.Thread(target=go) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == count
    return answers
