"""A database served in the process of the test by the mode ``self-contained``, with its root key."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import Result, TestClient

from svc.database import Database
from svc.pipeline import PipelineSettings, check_route, create_app
from svc.plugin import AuthContext
from svc.plugins import Plugins, initialize, load_plugins
from svc_auth_self.mode import SelfContainedAuthMode


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    """The kit's fixtures have this plugin and the one that it needs."""
    return ("auth.self", "users")


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    loaded = load_plugins(["users", "auth.self"], check_route=check_route)
    assert not loaded.problems
    return loaded


class Http:
    """Calls the routes of one application, as whoever a token names."""

    def __init__(self, app: Any, database: Database, root_key: str) -> None:
        self.app = app
        self.database = database
        self.root_key = root_key
        self._client = TestClient(app)
        self.root = self.token(root_key)

    def __call__(self, method: str, path: str, token: str | None = None, **options: Any) -> Result:
        headers = dict(options.pop("headers", {}))
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if "json" in options:
            options["body"] = json.dumps(options.pop("json"))
            headers["Content-Type"] = "application/json"
        return self._client.simulate_request(method, path, headers=headers, **options)

    def sign_in(self, key: str, **options: Any) -> Result:
        return self("POST", "/auth/token", json={"api_key": key}, **options)

    def refresh(self, token: str) -> Result:
        return self("POST", "/auth/refresh", json={"refresh_token": token})

    def token(self, key: str) -> str:
        answer = self.sign_in(key)
        assert answer.status_code == 200, answer.text
        return str(answer.json["token"])

    def status(self, token: str) -> int:
        return self("GET", "/system/whoami", token).status_code

    def whoami(self, token: str) -> dict[str, Any]:
        answer = self("GET", "/system/whoami", token)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json
        return found

    def make_user(self, name: str) -> str:
        answer = self("POST", "/system/users", self.root, json={"username": name})
        assert answer.status_code == 201, answer.text
        return str(answer.json["user_id"])

    def make_key(self, token: str | None = None, **body: Any) -> dict[str, Any]:
        answer = self("POST", "/auth/keys", token or self.root, json=body)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json
        return made

    def make_caller(self, name: str, **body: Any) -> tuple[str, str]:
        """A new user's id, and a token of theirs."""
        user_id = self.make_user(name)
        return user_id, self.token(self.make_key(user_id=user_id, **body)["key"])


Serve = Callable[..., Http]


@pytest.fixture
def serve(tmp_path: Path, plugins: Plugins) -> Iterator[Serve]:
    """Makes databases and serves them; settings of the plugin may be given."""
    opened: list[Any] = []

    def make(**settings: Any) -> Http:
        database = Database(tmp_path / f"{len(opened)}.svcdb")
        assert initialize(database, plugins) == ()
        if settings:
            from svc.plugins import configure

            configure(database, plugins, "auth.self", settings)
        lines = list(SelfContainedAuthMode().prepare(AuthContext(database, "", None)))
        app = create_app(database, plugins, settings=PipelineSettings(auth="self"))
        opened.append(app)
        return Http(app, database, lines[0].rpartition(" ")[2])

    yield make
    for app in opened:
        app.service.close()


@pytest.fixture
def http(serve: Serve) -> Http:
    return serve()


class Clock:
    """The time of this process; a test moves it on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead_s = 0.0
        real, real_ns = time.time, time.time_ns
        monkeypatch.setattr("time.time", lambda: real() + self._ahead_s)
        monkeypatch.setattr("time.time_ns", lambda: real_ns() + int(self._ahead_s * 1e9))

    def forward(self, seconds: float) -> None:
        self._ahead_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)
