"""A database with the plugin, and its routes called through the WSGI application."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import Result, TestClient

from svc.plugin import ROOT_USER_ID, Database, Identity
from svc.plugins import Plugins
from svc_testing import load_with_testing_auth, serve_in_process

ROOT = ROOT_USER_ID
NOBODY = "7f0a2b1c-0000-4000-8000-000000000001"
"""The id of nobody."""


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    """The kit's fixtures have this plugin and nothing else."""
    return ("users",)


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    return load_with_testing_auth("users")


class Http:
    """Calls the routes of one application."""

    def __init__(self, app: Any, database: Database, become: Callable[[Identity | None], None]) -> None:
        self.database = database
        self.become = become
        self._client = TestClient(app)

    def __call__(self, method: str, path: str, **options: Any) -> Result:
        return self._client.simulate_request(method, path, **options)

    def get(self, where: str, /, **params: Any) -> Result:
        return self("GET", where, params=params)

    def delete(self, path: str) -> Result:
        return self("DELETE", path)

    def send(self, method: str, path: str, value: Any) -> Result:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self(method, path, body=body, headers={"Content-Type": "application/json"})

    def post(self, path: str, value: Any) -> Result:
        return self.send("POST", path, value)

    def patch(self, path: str, value: Any) -> Result:
        return self.send("PATCH", path, value)

    def user(self, username: str, **members: Any) -> str:
        """Makes a user and returns the id."""
        made = self.post("/system/users", {"username": username, **members})
        assert made.status_code == 201, made.text
        user_id: str = made.json["user_id"]
        return user_id

    def group(self, name: str, **members: Any) -> None:
        """Makes a group."""
        made = self.post("/system/groups", {"name": name, **members})
        assert made.status_code == 201, made.text

    def grant(self, path: str, group: str, **members: Any) -> str:
        """Makes a grant and returns the id."""
        made = self.post("/system/grants", {"path": path, "group": group, **members})
        assert made.status_code in (200, 201), made.text
        grant_id: str = made.json["grant_id"]
        return grant_id

    def groups_of(self, user_id: str) -> list[str]:
        groups: list[str] = self.get(f"/system/users/{user_id}").json["groups"]
        return groups


@pytest.fixture
def http(tmp_path: Path, plugins: Plugins) -> Iterator[Http]:
    with serve_in_process(tmp_path / "http.svcdb", plugins) as (app, database, mode):

        def become(other: Identity | None) -> None:
            mode.identity = other

        yield Http(app, database, become)


def in_parallel(count: int, work: Callable[[int], object]) -> None:
    """Runs a piece of work in this many threads, each with its number."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
