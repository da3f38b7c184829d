"""A database whose commits a test makes one by one, and callers with few rights."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import Result, TestClient

from svc.plugin import ROOT_IDENTITY, Database, Identity, ScopedRule
from svc.plugins import Plugins
from svc_testing import PathRights, load_with_testing_auth, serve_in_process

Files = dict[str, bytes | None]


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    """The kit's fixtures have this plugin and the one that it needs."""
    return ("history", "versions")


class Http:
    """Calls the routes of one application, and writes files straight into its database."""

    def __init__(self, app: Any, database: Database, become: Callable[[Identity], None]) -> None:
        self.database = database
        self.become = become
        self._client = TestClient(app)

    def __call__(self, method: str, path: str, **options: Any) -> Result:
        return self._client.simulate_request(method, path, **options)

    def get(self, path: str, **options: Any) -> Result:
        return self("GET", path, **options)

    def delete(self, path: str) -> Result:
        return self("DELETE", path)

    def send(self, method: str, path: str, value: Any, **options: Any) -> Result:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self(method, path, body=body, headers={"Content-Type": "application/json"}, **options)

    def post(self, path: str, value: Any, **options: Any) -> Result:
        return self.send("POST", path, value, **options)


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    return load_with_testing_auth("history", "versions")


@pytest.fixture
def http(tmp_path: Path, plugins: Plugins) -> Iterator[Http]:
    with serve_in_process(tmp_path / "http.svcdb", plugins) as (app, database, mode):

        def become(other: Identity) -> None:
            mode.identity = other

        yield Http(app, database, become)


@pytest.fixture
def commit(http: Any) -> Callable[..., str]:
    """Puts each content at its path, deletes where it is None; one commit. Returns the version."""

    def make(files: Files, actor: str = "ann", message: str = "", *, fork: str | None = None) -> str:
        ref = "HEAD" if fork is None else f"forks/{fork}"
        transaction = http.database.transaction(actor=actor, message=message or None, ref=ref)
        for path, content in files.items():
            where = tuple(path.strip("/").split("/"))
            if content is None:
                transaction.delete(where, recursive=True)
            else:
                transaction.put(where, content, content_type="text/plain")
        version: str = transaction.commit().version.hex()
        return version

    return make


@pytest.fixture
def make_user() -> Callable[[dict[str, str]], Identity]:
    """Makes a user with rights by path prefix."""
    return lambda flags: Identity("00000000-0000-0000-0000-000000000009", "ann", rights=PathRights(flags))


@pytest.fixture
def make_key() -> Callable[..., Identity]:
    """Makes a key of root's that is narrowed by rules."""

    def key(*rules: tuple[str, str]) -> Identity:
        scoped = tuple(ScopedRule(glob, flags) for glob, flags in rules)
        return Identity(ROOT_IDENTITY.user_id, "root", is_root=True, key_id="key", rules=scoped)

    return key
