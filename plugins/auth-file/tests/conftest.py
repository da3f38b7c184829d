"""Files of users, and a database that is served in file mode within the process of the test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import Result, TestClient

from svc.pipeline import PipelineSettings, check_route, create_app
from svc.plugin import Database
from svc.plugins import Plugins, initialize, load_plugins, select_auth_mode
from svc_auth_file.keys import hash_of_key, new_key
from svc_auth_file.mode import FileAuthMode

PLUGINS = ("auth.file", "auth.self", "users")


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    """The kit's fixtures have this plugin and those that it needs."""
    return PLUGINS


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    return load_plugins(PLUGINS, check_route=check_route)


class Lines:
    """Writes the tables of a file of users."""

    def key(self, key: str, *, expires: str = "2030-01-01", rules: str = "[]") -> str:
        return f'[[users.keys]]\nhash = "{hash_of_key(key)}"\nexpires = {expires}\nrules = {rules}\n'

    def user(self, username: str, *keys: str, **fields: Any) -> str:
        shown = [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
        head = "\n".join(["[[users]]", f"username = {json.dumps(username)}", *shown, ""])
        return head + "".join(self.key(key) for key in keys)


@pytest.fixture
def lines() -> Lines:
    return Lines()


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Served:
    """An application in file mode.

    Attributes:
        file: the file of users.
        root_key: what was printed at the first start.
        look: lets the application look at the file with its next request.
    """

    client: TestClient
    database: Database
    file: Path
    root_key: str
    mode: FileAuthMode
    look: Callable[[], None]

    def write(self, text: str) -> None:
        """Replaces the file's content; the next request sees it."""
        self.file.write_text(text)
        self.look()

    def sign_in(self, key: str) -> Result:
        return self.post("/auth/token", {"api_key": key})

    def token(self, key: str) -> str:
        answer = self.sign_in(key)
        assert answer.status_code == 200, answer.text
        return str(answer.json["token"])

    def post(self, path: str, body: Any, token: str | None = None) -> Result:
        return self.client.simulate_post(path, json=body, headers=bearer(token))

    def get(self, path: str, token: str | None = None) -> Result:
        return self.client.simulate_get(path, headers=bearer(token))


def bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


@pytest.fixture
def ann_key() -> str:
    return new_key()


@pytest.fixture
def served(tmp_path: Path, plugins: Plugins, ann_key: str) -> Iterator[Served]:
    """An application whose file has the user ann with one key."""
    file = tmp_path / "users.toml"
    file.write_text(Lines().user("ann", ann_key, groups=["editors"]))
    database = Database(tmp_path / "file.svcdb")
    assert initialize(database, plugins) == ()
    selected = select_auth_mode(plugins, f"file://{file}")
    lines = list(selected.mode.prepare(selected.context(database, plugins)))
    app = create_app(database, plugins, settings=PipelineSettings(auth=f"file://{file}"))
    mode = app.service.auth_mode
    assert isinstance(mode, FileAuthMode)
    clock = Clock()
    mode._source._clock, mode._source._next_look = clock, 0.0

    def look() -> None:
        clock.now += 1000

    look()
    try:
        yield Served(TestClient(app), database, file, lines[0].rpartition(" ")[2], mode, look)
    finally:
        app.service.close()
