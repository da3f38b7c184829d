"""A database in this process with random documents, and the queries of any caller on it."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any

import msgspec
from blake3 import blake3
from falcon.testing import Result, TestClient
from svc_query.indexing import finish_work

from authorization_model.callers import identity_of
from authorization_model.rules import Caller, may
from query_model.documents import BOOKS, DIRECTORIES, OLD, document, fields_of
from query_model.semantics import Match, Row, is_below, match, order
from svc.database import Database
from svc.plugins import Identity, Plugins
from svc_testing import TestingAuthMode, load_with_testing_auth, serve_in_process
from svc_users.api import GrantedRights, checked_grant
from svc_users.rights import rule_of

Json = Any


@functools.cache
def plugins() -> Plugins:
    return load_with_testing_auth(*PLUGIN_IDS)


PLUGIN_IDS = (
    "files", "versions", "users", "query", "parsers", "index.exact", "index.trigram", "index.fulltext",
    "index.phonetic",
)  # fmt: skip


@functools.cache
def identity_with_grants(caller: Caller) -> Identity:
    """The identity of a caller, with rights as the plugin that keeps users makes them of grants."""
    identity = identity_of(caller)
    if caller.grants is None or caller.is_root:
        return identity
    rules = []
    for one in caller.grants:
        allow, deny = flags(one.allow), flags(one.deny)
        grant = checked_grant(one.path, "g", allow=allow, deny=deny, path_pattern=one.pattern, created_at=1)
        rules.append(rule_of(grant))
    return msgspec.structs.replace(identity, rights=GrantedRights(rules))


def flags(letters: str) -> str:
    return "".join(letter if letter in letters else "-" for letter in "crudlify")


class Corpus:
    """What is stored, as the test knows it, beside the database that stores it."""

    def __init__(self, app: Any, database: Database, mode: TestingAuthMode, seed: int) -> None:
        self.client = TestClient(app)
        self.database = database
        self.rows: dict[tuple[str, ...], Row] = {}
        self._mode = mode
        self._rng = random.Random(seed)
        self._time = 1_000

    def configure(self) -> None:
        with self.database.transaction() as transaction:
            for directory, configuration in (("books", BOOKS), ("books/old", OLD)):
                self._put(transaction, (*directory.split("/"), ".svc-config", "indexes.json"), configuration)

    def write(self, count: int) -> None:
        """So many random writes, in one commit: mostly files that are new or overwritten, some deleted."""
        rng = self._rng
        with self.database.transaction() as transaction:
            touched: set[tuple[str, ...]] = set()
            for _ in range(count):
                kind = rng.random()
                if kind < 0.15 and self.rows:
                    path = rng.choice(sorted(self.rows))
                    if path not in touched and ".svc-config" not in path:
                        transaction.delete(path)
                        del self.rows[path]
                        touched.add(path)
                    continue
                name = f"d{rng.randint(0, 60)}.{rng.choice(('json',) * 8 + ('txt', 'JSON'))}"
                path = (*rng.choice(DIRECTORIES).split("/"), name)
                if path in touched:
                    continue
                touched.add(path)
                content = document(rng)
                self._put(transaction, path, content)

    def _put(self, transaction: Any, path: tuple[str, ...], content: dict[str, Json]) -> None:
        encoded = json.dumps(content, ensure_ascii=self._rng.random() < 0.5).encode()
        self._time += self._rng.randint(0, 2)
        content_type = "text/plain" if path[-1].endswith(".txt") else "application/json"
        before = self.rows.get(path)
        created = before.created if before is not None else self._time
        transaction.put(path, encoded, content_type=content_type, created_ms=created, updated_ms=self._time)
        self.rows[path] = Row(
            path, len(encoded), content_type, created, self._time, blake3(encoded).hexdigest(),
            fields_of(path, content),
        )  # fmt: skip

    def post(self, url: str, query: Json, caller: Caller) -> Result:
        self._mode.identity = identity_with_grants(caller)
        return self.client.simulate_post(
            url, body=json.dumps(query), headers={"Content-Type": "application/json"}
        )

    def ask(self, query: Json, caller: Caller) -> dict[str, Json]:
        answer = self.post("/query", query, caller)
        assert answer.status_code == 200, (query, answer.status_code, answer.text)
        found: dict[str, Json] = answer.json
        return found

    def expected(self, query: Json, caller: Caller) -> list[tuple[Row, Match]]:
        """All rows of a query for a caller, in order."""
        directory = tuple(part for part in query["path"].split("/") if part)
        found = []
        for row in self.rows.values():
            if ".svc-config" in row.path and ".svc-config" not in directory:
                continue  # Configuration is no document unless it is asked for.
            if is_below(row.path, directory) and may(caller, "r", row.path):
                how = match(query["where"], row)
                if how is not None:
                    found.append((row, how))
        orders = [(one["field"], one.get("direction") == "desc") for one in query.get("order_by", ())]
        return order(found, orders)


class Asking:
    """A database, and queries of root on it."""

    def __init__(self, app: Any, database: Database) -> None:
        self.database = database
        self._client = TestClient(app)

    def index(self) -> None:
        """Does what a background process would do: many files at once are a job of its own."""
        assert finish_work(self.database)

    def post(self, query: Json, url: str = "/query") -> Result:
        return self._client.simulate_post(url, json=query)

    def ask(self, query: Json) -> dict[str, Json]:
        answer = self.post(query)
        assert answer.status_code == 200, (query, answer.status_code, answer.text)
        found: dict[str, Json] = answer.json
        return found


@contextmanager
def ask_as_root(path: FilePath, configurations: dict[str, Json]) -> Iterator[Asking]:
    """Serves a database with configurations, by their directories."""
    with serve_in_process(path, plugins()) as (app, database, _):
        with database.transaction() as transaction:
            for directory, configuration in configurations.items():
                place = (*(part for part in directory.split("/") if part), ".svc-config", "indexes.json")
                transaction.put(place, json.dumps(configuration).encode(), content_type="application/json")
        yield Asking(app, database)


@contextmanager
def serving(path: FilePath, seed: int) -> Iterator[Corpus]:
    """Serves a database with some hundred documents."""
    with serve_in_process(path, plugins()) as (app, database, mode):
        corpus = Corpus(app, database, mode, seed)
        corpus.configure()
        for _ in range(8):
            corpus.write(60)
        yield corpus
