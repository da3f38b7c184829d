"""A database in this process that holds given states, and the routes on it in the name of any caller."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any

from falcon.testing import Result, TestClient

from authorization_model.callers import identity_of
from authorization_model.rules import Caller
from authorization_model.trees import Node, State
from svc.database import Database, Transaction
from svc.plugins import ROOT_IDENTITY, Plugins
from svc.tree import EntryKind
from svc_testing import TestingAuthMode, load_with_testing_auth, serve_in_process

SNAPSHOT, FORK = "snap", "fork"


class Service:
    """The routes."""

    def __init__(self, app: Any, database: Database, mode: TestingAuthMode) -> None:
        self._client = TestClient(app)
        self._mode = mode
        self.database = database
        self._forks = 0
        self.snapshot_root = ""

    def become(self, caller: Caller) -> None:
        self._mode.identity = identity_of(caller)

    def __call__(self, method: str, url: str, body: Any = None, /, **query: str) -> Result:
        kind = query.pop("content_type", "application/json")
        content = body if isinstance(body, str) or body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": kind}
        return self._client.simulate_request(method, url, body=content, headers=headers, params=query)

    def as_root(self, method: str, url: str, body: Any = None) -> Result:
        identity, self._mode.identity = self._mode.identity, ROOT_IDENTITY
        try:
            return self(method, url, body)
        finally:
            self._mode.identity = identity

    def state_of(self, fork: str) -> State:
        """What a fork holds."""
        version = self.database.version_of(self.database.resolve_version(fork=fork))
        found: State = {}
        for path, entry in version.walk():
            if entry.kind is EntryKind.FILE:
                found[path] = Node("f", version.read_all(entry).decode())
            else:
                found[path] = (
                    Node("d") if entry.kind is EntryKind.DIRECTORY else Node("l", entry.target or "")
                )
        return found

    def new_fork(self) -> str:
        """A fork of HEAD to write to: HEAD stays as the model knows it."""
        self._forks += 1
        name = f"w{self._forks}"
        assert self.as_root("POST", "/versions/forks", {"name": name}).status_code == 201
        return name


@functools.cache
def plugins() -> Plugins:
    return load_with_testing_auth(
        *("files", "history", "versions", "backup", "query", "index.exact", "events", "events.sse", "mirror")
    )


@contextmanager
def serving(path: FilePath, past: State, head: State, fork: State) -> Iterator[Service]:
    """Serves a database whose snapshot, HEAD and fork hold these states."""
    with serve_in_process(path, plugins()) as (app, database, mode):
        service = Service(app, database, mode)
        write(database, {}, past)
        made = service("POST", "/versions/snapshots", {"name": SNAPSHOT})
        assert made.status_code == 201
        service.snapshot_root = made.json["root_hash"]
        assert service("POST", "/versions/forks", {"name": FORK}).status_code == 201
        write(database, past, head)
        write(database, past, fork, f"forks/{FORK}")
        yield service


def write(database: Database, before: State, after: State, ref: str = "HEAD") -> None:
    """Brings a ref from one state to another in one commit, if they differ."""
    if before == after:
        return
    with database.transaction(ref=ref) as transaction:
        for path in sorted(before, reverse=True):
            if path not in after or (before[path].kind != after[path].kind):
                transaction.delete(path)
        for path in sorted(after):
            if before.get(path) != after[path]:
                put(transaction, path, after[path])


def put(transaction: Transaction, path: tuple[str, ...], node: Node) -> None:
    if node.kind == "d":
        transaction.mkdir(path, exist_ok=True)
    elif node.kind == "l":
        transaction.link(path, node.content)
    else:
        content_type = "application/json" if path[-1].endswith(".json") else "text/plain"
        transaction.put(path, node.content.encode(), content_type=content_type)
