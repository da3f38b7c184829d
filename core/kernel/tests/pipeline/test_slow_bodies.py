"""A request whose body takes long is decided by what is granted when the body is complete."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import falcon
import pytest
from falcon.testing import create_environ
from msgspec.structs import replace

from svc.errors import AuthRequired
from svc.pipeline import (
    Application,
    Operation,
    body_stream,
    read_json,
    requires_any,
    requires_identity,
    requires_root,
    requires_somewhere,
    send_json,
)
from svc.plugins import (
    ROOT_IDENTITY,
    AuthContext,
    AuthMode,
    Credentials,
    Identity,
    ScopedRule,
    disable,
)

Path_ = tuple[str, ...]


class Rights:
    """Allows some operations below ``/own``."""

    def __init__(self, letters: str) -> None:
        self._letters = letters

    def allows(self, operation: Operation, path: Path_) -> bool:
        return operation.letter in self._letters and path[:1] == ("own",)

    def allows_below(self, operation: Operation, path: Path_) -> bool:
        return self.allows(operation, path)

    def visible_parts(self, operation: Operation, path: Path_) -> list[tuple[Path_, bool]]:
        return [(("own",), True)] if operation.letter in self._letters else []


class SilentRights:
    """Can't say where anything is allowed."""

    def allows(self, operation: Operation, path: Path_) -> bool:
        return False

    def allows_below(self, operation: Operation, path: Path_) -> bool:
        return False


class TokensMode(AuthMode):
    """Knows callers by a bearer token, which may end."""

    name = "tokens"

    def __init__(self) -> None:
        self.asked_once_a_commit = True
        self.callers = {
            "ann": Identity("ann", "ann", rights=Rights("cu")),
            "root": ROOT_IDENTITY,
        }
        self.judged: list[Credentials] = []

    def bind(self, context: AuthContext) -> AuthMode:
        return self

    def authenticate(self, credentials: Credentials) -> Identity | None:
        self.judged.append(credentials)
        identity = self.callers.get(credentials.value or "")
        if identity is None:
            raise AuthRequired("The token is not valid.")
        at_s = time.time() if credentials.as_of_s is None else credentials.as_of_s
        if identity.expires_ms is not None and identity.expires_ms / 1000 <= at_s:
            raise AuthRequired("The token is not valid.")
        return identity


class TakesBodies:
    """Notes what it has taken, and from whom."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    @requires_any(Operation.CREATE, Operation.UPDATE, path="path")
    def on_put(self, req: Any, resp: falcon.Response, path: Path_) -> None:
        stream = body_stream(req, 1000)
        while stream.read(4):
            pass
        self._take(req, resp)

    @requires_somewhere(Operation.CREATE, Operation.UPDATE)
    def on_post_somewhere(self, req: Any, resp: falcon.Response) -> None:
        body_stream(req, 1000).read(-1)
        self._take(req, resp)

    @requires_identity
    def on_post_json(self, req: Any, resp: falcon.Response) -> None:
        read_json(req, dict[str, int])
        self._take(req, resp)

    @requires_root
    def on_post_root(self, req: Any, resp: falcon.Response) -> None:
        raise_early = req.get_param("early")
        if raise_early:
            raise falcon.HTTPConflict
        body_stream(req, 1000).read(-1)
        self._take(req, resp)

    def _take(self, req: Any, resp: falcon.Response) -> None:
        self.taken.append(req.context.identity.name)
        send_json(resp, {}, 201)


class SlowInput:
    """Gives a body in pieces; something happens before the last."""

    def __init__(self, *pieces: bytes, meanwhile: Callable[[], None]) -> None:
        self._pieces = list(pieces)
        self._meanwhile = meanwhile

    def read(self, size: int) -> bytes:
        if len(self._pieces) == 1:
            self._meanwhile()
        if not self._pieces:
            return b""
        piece = self._pieces.pop(0)
        assert len(piece) <= size
        return piece


@pytest.fixture
def mode() -> TokensMode:
    return TokensMode()


@pytest.fixture
def resource() -> TakesBodies:
    return TakesBodies()


@pytest.fixture
def app(open_application: Callable[..., Application], mode: TokensMode, resource: TakesBodies) -> Application:
    def add_routes(routes: Any) -> None:
        routes.add("/put/{path:path}", resource)
        for suffix in ("somewhere", "json", "root"):
            routes.add(f"/{suffix}", resource, suffix=suffix)

    application = open_application(mode, add_routes)
    mode.judged.clear()
    return application


ROUTES = [("PUT", "/put/own/a"), ("POST", "/somewhere"), ("POST", "/json")]
routes = pytest.mark.parametrize(("method", "path"), ROUTES, ids=["stream", "whole", "json"])
framed = pytest.mark.parametrize("chunked", [False, True], ids=["by length", "in chunks"])


def send(
    app: Application,
    method: str,
    path: str,
    meanwhile: Callable[[], None] = lambda: None,
    *,
    token: str = "ann",
    chunked: bool = False,
    query: str = "",
) -> int:
    """Sends a body slowly; returns the status."""
    environ = create_environ(
        path, method=method, query_string=query, headers={"Authorization": f"Bearer {token}"}
    )
    environ["wsgi.input"] = SlowInput(b'{"a"', b": 1", b"} ", meanwhile=meanwhile)
    if chunked:
        environ["HTTP_TRANSFER_ENCODING"] = "chunked"
    else:
        environ["CONTENT_LENGTH"] = "9"
    statuses: list[str] = []
    body = app(environ, lambda status, *_: statuses.append(status))
    list(body)
    getattr(body, "close", lambda: None)()
    return int(statuses[0][:3])


def commit(app: Application) -> None:
    with app.service.require().database.transaction() as transaction:
        transaction.put(("x",), str(time.perf_counter_ns()).encode())


@routes
@framed
def test_who_is_still_let_in_is_served(
    app: Application, resource: TakesBodies, method: str, path: str, chunked: bool
) -> None:
    assert send(app, method, path, chunked=chunked) == 201
    assert send(app, method, path, lambda: commit(app), chunked=chunked) == 201
    assert resource.taken == ["ann", "ann"]


@routes
@framed
def test_who_was_taken_out_meanwhile_is_refused(
    app: Application, mode: TokensMode, resource: TakesBodies, method: str, path: str, chunked: bool
) -> None:
    def revoke() -> None:
        del mode.callers["ann"]
        commit(app)

    assert send(app, method, path, revoke, chunked=chunked) == 401
    assert resource.taken == []


@pytest.mark.parametrize(("method", "path"), ROUTES[:2])
def test_what_is_declared_is_asked_for_again(
    app: Application, mode: TokensMode, resource: TakesBodies, method: str, path: str
) -> None:
    def narrow() -> None:
        mode.callers["ann"] = replace(mode.callers["ann"], rights=Rights("rl"))
        commit(app)

    assert send(app, method, path, narrow) == 403
    assert resource.taken == []


def test_a_responder_sees_who_the_caller_is_by_now(
    app: Application, mode: TokensMode, resource: TakesBodies
) -> None:
    def rename() -> None:
        mode.callers["ann"] = replace(mode.callers["ann"], name="ann by now")
        commit(app)

    assert send(app, "POST", "/json", rename) == 201
    assert resource.taken == ["ann by now"]


def test_who_is_root_no_more_is_refused(app: Application, mode: TokensMode, resource: TakesBodies) -> None:
    def depose() -> None:
        mode.callers["root"] = mode.callers["ann"]
        commit(app)

    assert send(app, "POST", "/root", depose, token="root") == 403
    assert resource.taken == []


def test_a_plugin_that_was_disabled_takes_no_more(app: Application, resource: TakesBodies) -> None:
    database = app.service.require().database

    def turn_off() -> None:
        disable(database, app.service.plugins, "test.routes")

    assert send(app, "PUT", "/put/own/a", turn_off) == 404
    assert resource.taken == []


def test_routes_of_the_kernel_ask_again_too(app: Application, mode: TokensMode) -> None:
    def revoke() -> None:
        del mode.callers["root"]
        commit(app)

    assert send(app, "PUT", "/system/plugins/test.routes/configuration", revoke, token="root") == 401


def test_credentials_may_expire_while_a_body_comes_and_not_be_revoked(
    app: Application, mode: TokensMode, resource: TakesBodies, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    mode.callers["ann"] = replace(mode.callers["ann"], expires_ms=int((now + 60) * 1000))

    def go_on(seconds: float) -> None:
        monkeypatch.setattr("time.time", lambda: now + seconds)
        commit(app)

    assert send(app, "PUT", "/put/own/a", lambda: go_on(61)) == 201
    assert mode.judged[-1].as_of_s is not None
    assert send(app, "PUT", "/put/own/a") == 401

    def revoke() -> None:
        del mode.callers["ann"]
        go_on(62)

    go_on(1)
    assert send(app, "PUT", "/put/own/a", revoke) == 401
    assert resource.taken == ["ann"]


def test_a_body_that_nobody_reads_asks_nobody(app: Application, mode: TokensMode) -> None:
    assert send(app, "POST", "/root", lambda: commit(app), token="root", query="early=yes") == 409
    assert len(mode.judged) == 1


@pytest.mark.parametrize(
    ("identity", "status"),
    [
        (ROOT_IDENTITY, 201),
        (Identity("u", "u", rights=Rights("c")), 201),
        (Identity("u", "u", rights=Rights("u")), 201),
        (Identity("u", "u", rights=Rights("rld")), 403),
        (Identity("u", "u"), 403),
        (Identity("u", "u", rights=SilentRights()), 201),
        (Identity("u", "u", rights=Rights("cu"), rules=(ScopedRule("/own/**", "-r--l---"),)), 404),
        (Identity("u", "u", rights=Rights("cu"), rules=(ScopedRule("/own/**", "crudl"),)), 404),
        (Identity("u", "u", rights=Rights("cu"), rules=(ScopedRule("/own/**", "cru-l---"),)), 201),
        (Identity("u", "u", rights=Rights("r"), rules=(ScopedRule("/**", "crudl---"),)), 404),
        (replace(ROOT_IDENTITY, rules=(ScopedRule("/**", "-r--l---"),)), 404),
        (replace(ROOT_IDENTITY, rules=(ScopedRule("/a/**", "--u-----"),)), 201),
        (Identity(None, "share", rules=(ScopedRule("/a/**", "-r------"),)), 404),
        (Identity(None, "share", rules=(ScopedRule("/a/**", "c-------"),)), 201),
        (Identity(None, "share"), 403),
    ],
)
def test_who_may_do_something_somewhere(
    app: Application, mode: TokensMode, identity: Identity, status: int
) -> None:
    mode.callers["any"] = identity
    assert [send(app, "POST", "/somewhere", token="any") for _ in range(2)] == [status] * 2
