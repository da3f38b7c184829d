"""The file routes on a real database, called through the WSGI application."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import Result, TestClient

from svc.plugin import ROOT_IDENTITY, Database, Identity, Limits, ScopedRule
from svc.plugins import Plugins, configure
from svc_testing import PathRights, load_with_testing_auth, serve_in_process


class Http:
    """Calls the routes of one application."""

    def __init__(self, app: Any, database: Database, become: Callable[[Identity], None]) -> None:
        self.app = app
        self.database = database
        self.become = become
        self._client = TestClient(app)

    def __call__(self, method: str, path: str, **options: Any) -> Result:
        return self._client.simulate_request(method, path, **options)

    def get(self, path: str, **options: Any) -> Result:
        return self("GET", path, **options)

    def put(self, path: str, body: bytes | str = b"", **options: Any) -> Result:
        if not body:  # the test client says no length then, as no client of the world does
            options["headers"] = {"Content-Length": "0", **options.get("headers", {})}
        return self("PUT", path, body=body, **options)

    def post(self, path: str, value: Any, **options: Any) -> Result:
        body = json.dumps(value)
        return self("POST", path, body=body, headers={"Content-Type": "application/json"}, **options)

    def delete(self, path: str, **options: Any) -> Result:
        return self("DELETE", path, **options)

    def items(self, path: str, **options: Any) -> list[str]:
        """The paths of a listing."""
        return [item["path"] for item in self.get(path, **options).json["items"]]

    def fill(self, *paths: str) -> None:
        """Stores a file at each path, whose content is the path."""
        operations = [{"op": "put", "path": path, "content": path} for path in paths]
        assert self.post("/files/batch", {"operations": operations}).status_code == 200


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    return load_with_testing_auth("files")


@pytest.fixture
def server_limits() -> Limits:
    """The limits of the server; a test that needs others parametrizes it."""
    return Limits()


@pytest.fixture
def http(tmp_path: Path, plugins: Plugins, server_limits: Limits) -> Iterator[Http]:
    with serve_in_process(tmp_path / "test.svcdb", plugins, server_limits) as (app, database, mode):

        def become(other: Identity) -> None:
            mode.identity = other

        yield Http(app, database, become)


@pytest.fixture
def set_limits(http: Http, plugins: Plugins) -> Callable[..., None]:
    """Changes settings of the plugin in the database of the test."""

    def change(**settings: Any) -> None:
        configure(http.database, plugins, "files", settings)

    return change


def user(flags_by_path: dict[str, str], name: str = "ann") -> Identity:
    """A user with rights by path prefix."""
    return Identity(f"00000000-0000-0000-0000-{name:0>12}", name, rights=PathRights(flags_by_path))


def scoped_root(*rules: tuple[str, str]) -> Identity:
    """A key of root's that is narrowed by rules."""
    return Identity(
        ROOT_IDENTITY.user_id,
        "root",
        is_root=True,
        key_id="key",
        rules=tuple(ScopedRule(glob, flags) for glob, flags in rules),
    )


def share_key(*rules: tuple[str, str]) -> Identity:
    """A key without a user: its rules are all it has."""
    return Identity(
        None, "share", key_id="share", rules=tuple(ScopedRule(glob, flags) for glob, flags in rules)
    )
