"""A database with everything that queries have, and its routes called through the WSGI application."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import Result, TestClient
from svc_query.indexing import finish_work

from svc.plugin import ROOT_IDENTITY, Database, Identity, Operation, ScopedRule
from svc.plugins import Plugins
from svc_testing import PathRights, load_with_testing_auth, serve_in_process

PLUGINS = ("query", "index.exact", "index.trigram", "index.phonetic", "index.fulltext", "parsers")
USER = "00000000-0000-0000-0000-000000000009"


class Http:
    """Calls the routes of one application, and writes files straight into its database."""

    def __init__(self, app: Any, database: Database, become: Callable[[Identity], None]) -> None:
        self.database = database
        self.become = become
        self._client = TestClient(app)

    def __call__(self, method: str, path: str, **options: Any) -> Result:
        return self._client.simulate_request(method, path, **options)

    def get(self, where: str, /, **params: Any) -> Result:
        return self("GET", where, params=params)

    def post(self, path: str, value: Any) -> Result:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self("POST", path, body=body, headers={"Content-Type": "application/json"})

    def write(self, files: Mapping[str, Any], *, content_type: str | None = None) -> None:
        """Stores documents as JSON, texts as they are, and deletes where it is None; one commit."""
        transaction = self.database.transaction()
        for path, content in files.items():
            where = tuple(path.strip("/").split("/"))
            if content is None:
                transaction.delete(where, recursive=True)
            elif isinstance(content, str):
                transaction.put(where, content.encode(), content_type=content_type or "text/plain")
            else:
                transaction.put(where, json.dumps(content).encode(), content_type="application/json")
        transaction.commit()

    def finish(self) -> None:
        """Lets the index do all of its work."""
        assert finish_work(self.database)

    def query(self, where: Any = (), path: str = "/", **members: Any) -> dict[str, Any]:
        """The answer to a query, which must be one."""
        answer = self.post("/query", {"path": path, "where": where, **members})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json
        return found

    def paths(self, where: Any = (), path: str = "/", **members: Any) -> list[str]:
        """The paths of the rows of a query."""
        return [row["path"] for row in self.query(where, path, **members)["results"]]

    def refused(self, where: Any, path: str = "/", status: int = 400, **members: Any) -> dict[str, Any]:
        """The error of a query, which must have one."""
        answer = self.post("/query", {"path": path, "where": where, **members})
        assert answer.status_code == status, answer.text
        found: dict[str, Any] = answer.json
        return found


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    return load_with_testing_auth(*PLUGINS)


@pytest.fixture
def http(tmp_path: Path, plugins: Plugins) -> Iterator[Http]:
    with serve_in_process(tmp_path / "http.svcdb", plugins) as (app, database, mode):

        def become(other: Identity) -> None:
            mode.identity = other

        yield Http(app, database, become)


BOOKS = {
    "war": {"title": "War and Peace", "year": 1869, "author": "Tolstoi", "tags": ["novel", "history"]},
    "anna": {"title": "Anna Karenina", "year": 1878, "author": "Tolstoi", "tags": ["novel"]},
    "idiot": {"title": "The Idiot", "year": 1869, "author": "Dostojewski", "tags": []},
    "notes": {"title": "Notes from Underground", "year": 1864, "author": "Dostojewski", "price": 9.5},
    "gull": {"title": "The Seagull", "year": 1896, "author": "Tschechow", "price": 12, "year2": None},
}
INDEXES = {
    "glob": "**/*.json",
    "indexes": [
        {"name": "title", "type": ["exact", "trigram", "fulltext"]},
        {"name": "year", "type": "exact", "value_type": "integer"},
        {"name": "author", "type": ["exact", "phonetic", "trigram"]},
        {"name": "tags", "type": "exact", "source": ["tags", ""]},
        {"name": "price", "type": "exact"},
        {"name": "year2", "type": "exact"},
    ],
}


@pytest.fixture
def books(http: Any) -> Any:
    """Five books below ``/books/ru``, indexed."""
    http.write({"/books/.svc-config/indexes.json": INDEXES})
    http.write({f"/books/ru/{name}.json": book for name, book in BOOKS.items()})
    return http


class Granted(PathRights):
    """Rights that say where they may hold, as those of the plugin ``users`` do."""

    def visible_parts(self, operation: Operation, path: tuple[str, ...]) -> Any:
        found = [
            tuple(part for part in at.split("/") if part)
            for at, flags in self.flags.items()
            if operation.letter in flags
        ]
        if self.allows(operation, path):
            found.append(path)
        below = sorted(at for at in found if at[: len(path)] == path)
        outer = [at for at in below if not any(at[: len(other)] == other for other in below if other != at)]
        return tuple((at, self.allows_below(operation, at)) for at in dict.fromkeys(outer))


@pytest.fixture
def user() -> Callable[[dict[str, str]], Identity]:
    """Makes a user with rights by path prefix."""
    return lambda flags: Identity(USER, "ann", rights=Granted(flags))


@pytest.fixture
def key() -> Callable[..., Identity]:
    """Makes a key of root's that is narrowed by rules."""

    def make(*rules: tuple[str, str]) -> Identity:
        scoped = tuple(ScopedRule(glob, flags) for glob, flags in rules)
        return Identity(ROOT_IDENTITY.user_id, "root", is_root=True, key_id="key", rules=scoped)

    return make
