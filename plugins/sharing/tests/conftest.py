"""A database with the plugin and what it needs, served in the process with real keys and tokens."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import Result, TestClient

from svc.database import Database
from svc.pipeline import PipelineSettings, check_route, create_app
from svc.plugin import ROOT_USER_ID
from svc.plugins import Plugins, initialize, load_plugins
from svc_auth_self.api import create_key

PLUGINS = ("users", "auth.self", "sharing")


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    """The kit's fixtures have this plugin and what it needs."""
    return PLUGINS


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    loaded = load_plugins(PLUGINS, check_route=check_route)
    assert not loaded.problems
    return loaded


class Http:
    """Calls the routes of one application; as root, unless a token says otherwise."""

    def __init__(self, app: Any, database: Database) -> None:
        self.app = app
        self.database = database
        self.client = TestClient(app)
        self.root = self.token_of(self.key_of(ROOT_USER_ID))

    def __call__(
        self,
        method: str,
        path: str,
        *,
        token: str | None = "root",
        fields: dict[str, str] | None = None,
        **options: Any,
    ) -> Result:
        bearer = self.root if token == "root" else token
        sent = {**({} if bearer is None else {"Authorization": f"Bearer {bearer}"}), **(fields or {})}
        return self.client.simulate_request(method, path, headers=sent, **options)

    def get(self, path: str, **options: Any) -> Result:
        return self("GET", path, **options)

    def send(self, method: str, path: str, value: Any, **options: Any) -> Result:
        fields = {"Content-Type": "application/json", **options.pop("fields", {})}
        return self(method, path, body=json.dumps(value), fields=fields, **options)

    def post(self, path: str, value: Any, **options: Any) -> Result:
        return self.send("POST", path, value, **options)

    def write(self, *texts: str) -> None:
        """Puts a small file at each path; a path that ends in a slash becomes a directory."""
        with self.database.transaction() as transaction:
            for text in texts:
                path = tuple(name for name in text.split("/") if name)
                if text.endswith("/"):
                    transaction.mkdir(path)
                else:
                    transaction.put(path, text.encode(), content_type="text/plain")

    def key_of(self, user_id: str, rules: Sequence[dict[str, str]] = ()) -> str:
        """Makes an API key of a user."""
        with self.database.transaction() as transaction:
            _, text = create_key(
                self.database,
                transaction,
                user_id=user_id,
                label="",
                expires_at=time.time_ns() // 1_000_000 + 86_400_000,
                rules=rules,
                created_by=None,
            )
        return text

    def token_of(self, key: str) -> str:
        answer = self.post("/auth/token", {"api_key": key}, token=None)
        assert answer.status_code == 200, answer.text
        token: str = answer.json["token"]
        return token

    def user(self, username: str) -> tuple[str, str]:
        """Makes a user; returns the id and a token."""
        made = self.post("/system/users", {"username": username})
        assert made.status_code == 201, made.text
        user_id: str = made.json["user_id"]
        return user_id, self.token_of(self.key_of(user_id))

    def group(self, name: str, *members: str) -> None:
        made = self.post("/system/groups", {"name": name, "members": list(members)})
        assert made.status_code == 201, made.text

    def may(self, token: str, path: str) -> str:
        """The flags of whoever has the token at a path that is shared with them; empty when none is."""
        items = self.get("/files/shared-with-me", token=token).json["items"]
        return next((item["effective_permissions"] for item in items if item["path"] == path), "")

    def link(self, *paths: str, **members: Any) -> dict[str, Any]:
        made = self.post("/files/share-link", {"paths": list(paths), **members})
        assert made.status_code == 201, made.text
        answer: dict[str, Any] = made.json
        return answer

    def open(self, key: str, **options: Any) -> Result:
        """Signs a browser in, as the first page does."""
        return self.post("/share/session", {"key": key}, token=None, **options)

    def cookie_of(self, key: str) -> str:
        opened = self.open(key)
        assert opened.status_code == 200, opened.text
        return f"svc_share={opened.cookies['svc_share'].value}"

    def page(self, path: str, cookie: str | None, **fields: str) -> Result:
        """Asks as a browser does."""
        sent = {"Accept": "text/html,*/*;q=0.8", **({} if cookie is None else {"Cookie": cookie}), **fields}
        return self.get(f"/share/files/{path.lstrip('/')}", token=None, fields=sent)


@pytest.fixture
def http(tmp_path: Path, plugins: Plugins) -> Iterator[Http]:
    database = Database(tmp_path / "http.svcdb")
    assert initialize(database, plugins) == ()
    app = create_app(database, plugins, settings=PipelineSettings(auth="self-contained"))
    yield Http(app, database)
    app.service.close()
