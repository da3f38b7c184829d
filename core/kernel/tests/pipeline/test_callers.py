"""What is kept of callers is exact: of each request's own token, and no longer than to the next commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import falcon
import pytest
from falcon.testing import TestClient, create_environ
from msgspec.structs import replace

from svc.database import Database
from svc.errors import AuthRequired, NotFound
from svc.pipeline import (
    Application,
    Operation,
    accepts_query_token,
    renew_caller,
    requires,
    requires_identity,
    send_json,
    send_stream,
)
from svc.plugins import (
    AuthContext,
    AuthMode,
    Credentials,
    Identity,
    disable,
)

NAMES = ("ann", "ben")


class CountedRights:
    """May read what is named; counts the questions."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.asked: list[tuple[str, ...]] = []

    def allows(self, operation: Operation, path: tuple[str, ...]) -> bool:
        return operation is Operation.READ and path[-1:] != () and path[-1] in self.names

    def mask(self, path: tuple[str, ...]) -> int:
        self.asked.append(path)
        return Operation.READ.bit if self.allows(Operation.READ, path) else 0


class NamesMode(AuthMode):
    """Knows callers by a bearer token, a query token, or a field of another name."""

    name = "names"

    def __init__(self) -> None:
        self.asked_once_a_commit = True
        self.judged: list[Credentials] = []
        self.callers = {name: Identity(name, name, rights=CountedRights(name, "all")) for name in NAMES}
        self.database: Database | None = None
        self.commits = False

    def bind(self, context: AuthContext) -> AuthMode:
        self.database = context.database
        return self

    def authenticate(self, credentials: Credentials) -> Identity | None:
        self.judged.append(credentials)
        if self.commits and self.database is not None:
            put(self.database)
        name = credentials.value if credentials.scheme == "bearer" and credentials.value else None
        name = name or credentials.query_token or credentials.header("x-name")
        if name is None:
            return None
        if name not in self.callers:
            raise AuthRequired("The token is not valid.")
        return self.callers[name]


class NameResource:
    @accepts_query_token
    @requires(Operation.READ, path="path")
    def on_get(self, req: Any, resp: falcon.Response, path: tuple[str, ...]) -> None:
        req.context.authorize(Operation.READ, path)
        send_json(resp, {"name": req.context.identity.name})


def put(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.put(("x",), str(time.perf_counter_ns()).encode())


@pytest.fixture
def mode() -> NamesMode:
    return NamesMode()


@pytest.fixture
def app(open_application: Callable[..., Application], mode: NamesMode) -> Application:
    def add_routes(routes: Any) -> None:
        routes.add("/names/{path:path}", NameResource())
        routes.add("/going-on", GoingOnResource())

    application = open_application(mode, add_routes)
    mode.judged.clear()
    return application


def get(app: Application, path: str = "/names/all", query: str = "", **fields: str) -> str | int:
    """The name under which the request was answered, or the status of the refusal."""
    headers = {name.replace("_", "-"): value for name, value in fields.items()}
    answer = TestClient(app).simulate_get(path, headers=headers, query_string=query)
    return str(answer.json["name"]) if answer.status_code == 200 else answer.status_code


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {name}"}


def database_of(app: Application) -> Database:
    return app.service.require().database


def test_a_token_is_judged_once_until_the_next_commit(app: Application, mode: NamesMode) -> None:
    assert [get(app, **bearer("ann")) for _ in range(3)] == ["ann"] * 3
    assert [get(app, **bearer("ben")) for _ in range(3)] == ["ben"] * 3
    assert [one.value for one in mode.judged] == ["ann", "ben"]
    put(database_of(app))
    assert get(app, **bearer("ann")) == "ann"
    assert len(mode.judged) == 3


def test_who_was_taken_out_is_refused_after_the_commit_that_says_so(
    app: Application, mode: NamesMode
) -> None:
    assert get(app, **bearer("ann")) == "ann"
    del mode.callers["ann"]
    put(database_of(app))
    assert get(app, **bearer("ann")) == 401
    assert get(app, **bearer("ann")) == 401


def test_who_is_known_is_not_let_in_by_a_mode_that_was_disabled(app: Application) -> None:
    assert get(app, **bearer("ann")) == "ann"
    disable(database_of(app), app.service.plugins, "test.auth")
    assert get(app, **bearer("ann")) == 503


def test_a_mode_that_does_not_ask_for_it_is_asked_every_time(app: Application, mode: NamesMode) -> None:
    mode.asked_once_a_commit = False
    assert get(app, **bearer("ann")) == "ann"
    del mode.callers["ann"]
    assert get(app, **bearer("ann")) == 401


def test_credentials_end_on_time(app: Application, mode: NamesMode, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    mode.callers["ann"] = replace(mode.callers["ann"], expires_ms=int((now + 60) * 1000))
    assert get(app, **bearer("ann")) == "ann"
    del mode.callers["ann"]
    assert get(app, **bearer("ann")) == "ann"
    monkeypatch.setattr("time.time", lambda: now + 61)
    assert get(app, **bearer("ann")) == 401


@pytest.mark.parametrize("authorization", ["", "Basic eHh4", "Bearer", "bearer ", "Basic"])
def test_who_is_known_by_anything_but_a_bearer_token_is_judged_every_time(
    app: Application, authorization: str
) -> None:
    for name in (*NAMES, *NAMES):
        assert get(app, query=f"token={name}", Authorization=authorization) == name
    for name in (*NAMES, *NAMES):
        assert get(app, Authorization=authorization, X_Name=name) == name
    assert get(app, Authorization=authorization) == 401


def test_a_bearer_token_is_not_mistaken_for_another_spelling(app: Application) -> None:
    assert get(app, **bearer("ann")) == "ann"
    assert get(app, Authorization="Bearer ann2") == 401
    assert get(app, Authorization="ann") == 401
    assert get(app, Authorization="bearer  ann") == "ann"


def test_what_was_judged_while_a_commit_came_does_not_outlive_it(app: Application, mode: NamesMode) -> None:
    mode.commits = True
    assert get(app, **bearer("ann")) == "ann"
    mode.commits = False
    del mode.callers["ann"]
    assert get(app, **bearer("ann")) == 401


def test_a_decision_is_made_once_for_an_identity(app: Application, mode: NamesMode) -> None:
    for _ in range(3):
        assert get(app, "/names/ann", **bearer("ann")) == "ann"
        assert get(app, "/names/other", **bearer("ann")) == 403
    rights = mode.callers["ann"].rights
    assert isinstance(rights, CountedRights)
    assert rights.asked == [("ann",), ("other",)]


@pytest.mark.parametrize("once", [True, False])
def test_other_rights_count_with_the_commit_that_gives_them(
    app: Application, mode: NamesMode, once: bool
) -> None:
    mode.asked_once_a_commit = once
    for name, status in (("other", "ann"), ("ann", 403), ("other", "ann")):
        mode.callers["ann"] = replace(mode.callers["ann"], rights=CountedRights(name))
        put(database_of(app))
        assert get(app, "/names/other", **bearer("ann")) == status


def test_what_is_kept_is_bounded(app: Application, mode: NamesMode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc.pipeline.callers._MOST_CALLERS", 3)
    monkeypatch.setattr("svc.pipeline.callers._MOST_DECISIONS", 10)
    callers = app.service.require().callers
    for number in range(20):
        mode.callers[f"c{number}"] = mode.callers["ann"]
        assert get(app, **bearer(f"c{number}")) == "ann"
        assert len(callers.by_authorization) <= 3
    for number in range(40):
        assert get(app, f"/names/{number}", **bearer("ann")) == 403
        assert sum(len(one.decisions) for one in callers.by_authorization.values()) <= 10
    app.drop_caches()
    assert not callers.by_authorization


class GoingOnResource:
    """Answers as long as the caller is somebody: a name for each piece."""

    @accepts_query_token
    @requires_identity
    def on_get(self, req: Any, resp: falcon.Response) -> None:
        def names() -> Iterator[bytes]:
            while True:
                yield req.context.identity.name.encode()
                try:
                    renew_caller(req)
                except (AuthRequired, NotFound) as error:
                    yield type(error).__name__.encode()
                    return

        send_stream(resp, names(), None)


@pytest.mark.parametrize("by_query", [False, True], ids=["by a field", "by the query"])
def test_an_answer_that_takes_long_learns_what_became_of_its_caller(
    app: Application, mode: NamesMode, by_query: bool
) -> None:
    environ = create_environ(
        "/going-on",
        query_string="token=ann" if by_query else "",
        headers={} if by_query else bearer("ann"),
    )
    pieces = iter(app(environ, lambda *_: None))
    assert [next(pieces) for _ in range(3)] == [b"ann"] * 3
    mode.callers["ann"] = Identity("ann", "ann by now")
    put(database_of(app))
    # The piece that was made already says what was true then.
    assert [next(pieces) for _ in range(2)][-1] == b"ann by now"
    del mode.callers["ann"]
    put(database_of(app))
    assert list(pieces)[-1] == b"AuthRequired"
