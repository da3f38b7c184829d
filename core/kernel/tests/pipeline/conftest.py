"""An application over a real database, with a plugin of routes and identities by token."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import falcon
import msgspec
import pytest
from falcon.testing import TestClient

from svc.database import Database
from svc.errors import Conflict
from svc.pipeline import (
    Application,
    Operation,
    PipelineSettings,
    body_stream,
    check_route,
    create_app,
    errors_as_page,
    public,
    read_json,
    requires,
    requires_any,
    requires_identity,
    requires_in_body,
    requires_root,
    send_content,
    send_json,
    send_stream,
)
from svc.plugins import (
    AuthMode,
    HealthCheck,
    HealthReport,
    HealthStatus,
    Identity,
    PluginDescriptor,
    Plugins,
    ScopedRule,
    initialize,
)
from svc.plugins.registries import make_registries
from svc_testing import TestingAuthMode

CONTENT = b"0123456789"
UPDATED_MS = 1_700_000_000_123


class ReadersRights:
    """May read and list everything, and write below /own."""

    def allows(self, operation: Operation, path: tuple[str, ...]) -> bool:
        return operation in (Operation.READ, Operation.LIST) or path[:1] == ("own",)


IDENTITIES = {
    "root": Identity("00000000-0000-0000-0000-000000000000", "root", is_root=True),
    "reader": Identity("7f0a2b1c-0000-4000-8000-000000000001", "reader", rights=ReadersRights()),
    "nobody": Identity("7f0a2b1c-0000-4000-8000-000000000002", "nobody"),
    "scoped": Identity(
        "7f0a2b1c-0000-4000-8000-000000000001",
        "scoped",
        rights=ReadersRights(),
        rules=(ScopedRule("/own/**", "crudl---"),),
    ),
    "scoped-root": Identity(
        "00000000-0000-0000-0000-000000000000",
        "root",
        is_root=True,
        rules=(ScopedRule("/own/**", "-r------"),),
    ),
    "member": Identity(
        "7f0a2b1c-0000-4000-8000-000000000003",
        "member",
        key_id="key",
        groups=frozenset(("b", "a")),
        expires_ms=5,
    ),
    "share": Identity(None, "share", rules=(ScopedRule("/shared/*", "-r------"),)),
}


class Names(msgspec.Struct):
    names: list[str]


class PathResource:
    @requires(Operation.READ, path="path")
    def on_get(self, req: Any, resp: falcon.Response, path: tuple[str, ...]) -> None:
        if path == ("boom",):
            raise RuntimeError("this text stays in the log")
        if path == ("closing",):
            req.env["test.close"]()
            os.fstat(-1)
        if path == ("conflict",):
            resp.set_header("ETag", '"half done"')
            raise Conflict("It does not fit.", path="/conflict")
        if path == ("late",):
            send_stream(resp, failing_stream(after=1), None)
            return
        if path == ("early",):
            send_stream(resp, failing_stream(after=0), 10)
            return
        resp.set_header("X-Path", "|".join(path).encode("unicode-escape").decode())
        send_content(
            req,
            resp,
            size=len(CONTENT),
            etag="abc",
            updated_ms=UPDATED_MS,
            content_type="text/plain",
            read=lambda start, length: iter([CONTENT[start : start + length]]),
        )

    @requires_any(Operation.CREATE, Operation.UPDATE, path="path")
    def on_put(self, req: Any, resp: falcon.Response, path: tuple[str, ...]) -> None:
        req.context.authorize(Operation.UPDATE, path)
        send_json(resp, {"received": len(body_stream(req, 100).read(-1)), "path": path}, 201)


def failing_stream(after: int) -> Iterator[bytes]:
    for _ in range(after):
        yield b"piece"
    raise Conflict("The stream broke.")


class QueryResource:
    @requires_in_body(Operation.READ)
    def on_post(self, req: Any, resp: falcon.Response) -> None:
        names = read_json(req, Names, limit=1000).names
        for name in names:
            req.context.authorize(Operation.READ, (name,))
        send_json(resp, {"names": names})


class KindsResource:
    @public
    def on_get(self, req: Any, resp: falcon.Response) -> None:
        send_json(resp, {"user": req.context.actor})

    @requires_identity
    def on_put(self, req: Any, resp: falcon.Response) -> None:
        send_json(resp, {"user": req.context.actor})

    @requires_root
    def on_delete(self, req: Any, resp: falcon.Response) -> None:
        send_json(resp, {"user": req.context.actor})


def sorry(resp: falcon.Response, status: int) -> None:
    resp.content_type = "text/html; charset=utf-8"
    resp.data = b"<h1>Sorry, %d</h1>" % status


class PageResource:
    @errors_as_page(sorry)
    @requires(Operation.READ, path="path")
    def on_get(self, req: Any, resp: falcon.Response, path: tuple[str, ...]) -> None:
        raise Conflict("It does not fit.", path="/conflict")


class ChangingCheck(HealthCheck):
    name = "changing"
    answer: Callable[[], HealthReport] = staticmethod(HealthReport)

    def check(self, context: Any) -> HealthReport:
        return type(self).answer()


def degraded() -> HealthReport:
    return HealthReport(HealthStatus.DEGRADED, "The index is behind.")


def make_plugins() -> Plugins:
    registries = make_registries(check_route)
    with registries.adding("test.routes"):
        registries.routes.add("/things/{path:path}", PathResource())
        registries.routes.add("/things/query", QueryResource())
        registries.routes.add("/kinds", KindsResource())
        registries.routes.add("/pages/{path:path}", PageResource())
        registries.health_checks.add(ChangingCheck())
    with registries.adding("test.auth"):
        registries.auth_modes.add(TestingAuthMode(None, IDENTITIES))
    registries.freeze()
    ids = ("test.routes", "test.auth")
    descriptors = {
        plugin_id: PluginDescriptor(
            plugin_id, "1.0", "For tests", (1, 1), "test_module", response_headers=("X-Thing", "etag")
        )
        for plugin_id in ids
    }
    return Plugins(registries, {}, ids, (), descriptors, (), {})


@pytest.fixture
def plugins() -> Plugins:
    ChangingCheck.answer = staticmethod(HealthReport)
    return make_plugins()


@pytest.fixture
def settings() -> PipelineSettings:
    return PipelineSettings(auth="testing", cors_origins=("https://app.example",))


@pytest.fixture
def app(tmp_path: Path, plugins: Plugins, settings: PipelineSettings) -> Iterator[Application]:
    database = Database(tmp_path / "test.svcdb")
    assert initialize(database, plugins) == ()
    application = create_app(database, plugins, settings=settings)
    yield application
    application.service.close()


@pytest.fixture
def client(app: Application) -> TestClient:
    return TestClient(app, headers={"Authorization": "Bearer root"})


@pytest.fixture
def anonymous(app: Application) -> TestClient:
    return TestClient(app)


OpenApplication = Callable[[AuthMode, Callable[[Any], None]], Application]


@pytest.fixture
def open_application(tmp_path: Path) -> Iterator[OpenApplication]:
    """Opens an application with an auth mode of the test's own, and the routes that a function adds."""
    opened: list[Application] = []

    def make(mode: AuthMode, add_routes: Callable[[Any], None]) -> Application:
        registries = make_registries(check_route)
        with registries.adding("test.routes"):
            add_routes(registries.routes)
        with registries.adding("test.auth"):
            registries.auth_modes.add(mode)
        registries.freeze()
        ids = ("test.routes", "test.auth")
        descriptors = {one: PluginDescriptor(one, "1.0", "For tests", (1, 1), "test_module") for one in ids}
        plugins = Plugins(registries, {}, ids, (), descriptors, (), {})
        database = Database(tmp_path / "test.svcdb")
        assert initialize(database, plugins) == ()
        opened.append(create_app(database, plugins, settings=PipelineSettings(auth=mode.name)))
        return opened[-1]

    yield make
    for application in opened:
        application.service.close()
