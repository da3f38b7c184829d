"""A database with the plugin, and its routes called through the WSGI application."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import Result, TestClient

from svc.plugin import ROOT_IDENTITY, Database, Identity, ScopedRule
from svc.plugins import Plugins
from svc_testing import PathRights, load_with_testing_auth, serve_in_process


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    """The kit's fixtures have this plugin and nothing else."""
    return ("versions",)


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

    def write(self, files: dict[str, str | None], fork: str | None = None) -> None:
        """Puts each content at its path, and deletes where it is None."""
        write(self.database, files, fork)

    def files(self, fork: str | None = None) -> dict[str, str]:
        return contents(self.database, fork)


def in_parallel(count: int, work: Callable[[int], object]) -> None:
    """Runs a piece of work in this many threads, each with its number."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def write(database: Database, files: dict[str, str | None], fork: str | None = None) -> None:
    """Puts each content at its path, and deletes where it is None; one commit."""
    with database.transaction(ref="HEAD" if fork is None else f"forks/{fork}") as transaction:
        for path, content in files.items():
            where = tuple(path.strip("/").split("/"))
            if content is None:
                transaction.delete(where, recursive=True)
            else:
                transaction.put(where, content.encode())


def contents(database: Database, fork: str | None = None, snapshot: str | None = None) -> dict[str, str]:
    """All files of HEAD, a fork or a snapshot."""
    version = database.at(database.resolve_version(fork=fork, snapshot=snapshot))
    return {
        "/" + "/".join(path): version.read_all(entry).decode()
        for path, entry in version.walk(files_only=True)
        if entry.target is None
    }


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    return load_with_testing_auth("versions")


@pytest.fixture
def http(tmp_path: Path, plugins: Plugins) -> Iterator[Http]:
    with serve_in_process(tmp_path / "http.svcdb", plugins) as (app, database, mode):

        def become(other: Identity) -> None:
            mode.identity = other

        yield Http(app, database, become)


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
