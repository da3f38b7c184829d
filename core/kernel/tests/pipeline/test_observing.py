"""Observers are told of each request, once, and stop none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import falcon
import pytest
from falcon.testing import TestClient

from svc.database import Database
from svc.pipeline import (
    Application,
    Operation,
    PipelineSettings,
    check_route,
    create_app,
    public,
    requires,
    send_json,
    send_stream,
)
from svc.plugins import FinishedRequest, PluginDescriptor, Plugins, RequestObserver, disable, initialize
from svc.plugins.registries import make_registries
from svc.steps import Steps
from svc_testing import TestingAuthMode

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Writer:
    @public
    def on_put(self, req: Any, resp: falcon.Response) -> None:
        with req.context.database.transaction() as transaction:
            transaction.put(("a",), b"x")
        send_json(resp, {})

    @public
    def on_get(self, req: Any, resp: falcon.Response) -> None:
        send_stream(resp, iter([b"12", b"345"]), None)

    @public
    def on_delete(self, req: Any, resp: falcon.Response) -> None:
        raise RuntimeError("broken")


class Closed:
    @requires(Operation.READ, path="path")
    def on_get(self, req: Any, resp: falcon.Response, path: tuple[str, ...]) -> None:
        send_json(resp, {})


class Listening(RequestObserver):
    name = "test.observing"

    def __init__(self) -> None:
        self.told: list[FinishedRequest] = []
        self.plugins: set[str] = set()
        self.fails = False

    def finished(self, request: FinishedRequest, context: Any) -> None:
        self.told.append(request)
        self.plugins.add(context.plugin_id)
        if self.fails:
            raise ValueError("broken")


@pytest.fixture
def observer() -> Listening:
    return Listening()


@pytest.fixture
def app(tmp_path: Path, observer: Listening) -> Iterator[Application]:
    registries = make_registries(check_route)
    with registries.adding("test.routes"):
        registries.routes.add("/written", Writer())
        registries.routes.add("/closed/{path:path}", Closed())
    with registries.adding("test.auth"):
        registries.auth_modes.add(TestingAuthMode(None, {}))
    with registries.adding("test.observing"):
        registries.request_observers.add(observer)
    registries.freeze()
    ids = ("test.routes", "test.auth", "test.observing")
    descriptors = {name: PluginDescriptor(name, "1.0", "For tests", (1, 1), "test_module") for name in ids}
    plugins = Plugins(registries, {}, ids, (), descriptors, (), {})
    database = Database(tmp_path / "x.svcdb")
    assert initialize(database, plugins) == ()
    app = create_app(database, plugins, settings=PipelineSettings(auth="testing"))
    yield app
    app.service.close()


def test_each_request_is_told_once_with_what_it_was(app: Application, observer: Listening) -> None:
    before = time.time_ns()
    client = TestClient(app)
    client.simulate_get(
        "/written", headers={"traceparent": TRACE, "tracestate": "a=b", "X-Request-Id": "mine"}
    )
    client.simulate_get("/closed/secret.txt", query_string="token=very-secret")
    client.simulate_get("/nothing/at/all")
    client.simulate_delete("/written")
    client.simulate_put("/written", body=b"", headers={"Authorization": "Bearer very-secret"})
    told = [(one.method, one.route, one.status, one.sent > 0, one.is_complete) for one in observer.told]
    assert told == [
        ("GET", "/written", 200, True, True),
        ("GET", "/closed/{path:path}", 401, True, True),
        ("GET", "", 404, True, True),
        ("DELETE", "/written", 500, True, True),
        ("PUT", "/written", 200, True, True),
    ]
    first = observer.told[0]
    assert (first.trace_parent, first.trace_state, first.request_id) == (TRACE, "a=b", "mine")
    assert (first.path, first.scheme, first.protocol, first.sent) == ("/written", "http", "1.1", 5)
    assert before <= first.began_ns <= time.time_ns()
    assert 0 <= first.seconds < 60
    assert "very-secret" not in repr(observer.told)
    assert observer.plugins == {"test.observing"}


def test_what_a_commit_waited_for_is_told_in_order(app: Application, observer: Listening) -> None:
    client = TestClient(app)
    for _ in range(2):
        client.simulate_put("/written", body=b"")
        client.simulate_get("/written")
    for written, read in (observer.told[:2], observer.told[2:]):
        lock, sync, commit = written.steps
        assert [step.name for step in written.steps] == ["commit.lock", "log.sync", "commit"]
        assert written.began <= commit.began <= lock.began <= lock.ended <= sync.began
        assert sync.began <= sync.ended <= commit.ended <= written.began + written.seconds
        assert read.steps == ()


def test_a_client_that_leaves_is_told_of_too(app: Application, observer: Listening) -> None:
    environ = falcon.testing.create_environ("/written")
    pieces: Any = app(environ, falcon.testing.StartResponseMock())
    assert next(pieces) == b"12"
    assert observer.told == []
    pieces.close()
    pieces.close()
    [told] = observer.told
    assert (told.is_complete, told.sent, told.status) == (False, 2, 200)


def test_one_that_raises_costs_no_request_and_pauses(app: Application, observer: Listening) -> None:
    observer.fails = True
    client = TestClient(app)
    assert [client.simulate_get("/written").status_code for _ in range(3)] == [200] * 3
    assert len(observer.told) == 1


def test_one_that_is_not_enabled_is_told_nothing(app: Application, observer: Listening) -> None:
    live = app.service.live
    assert live is not None
    disable(live.database, app.service.plugins, "test.observing")
    assert TestClient(app).simulate_get("/written").status_code == 200
    assert observer.told == []


def test_a_request_has_so_many_steps_at_most() -> None:
    steps = Steps()
    for _ in range(1000):
        steps.note("commit", 0.0, 1.0)
    assert len(steps) == 100


@pytest.mark.parametrize(
    ("sent", "trace_id"), [(TRACE, TRACE.split("-")[1]), ("00-short", None), (None, None)]
)
def test_the_line_of_the_log_names_the_trace_of_the_caller(
    app: Application, caplog: pytest.LogCaptureFixture, sent: str | None, trace_id: str | None
) -> None:
    database = app.service.require().database
    settings = PipelineSettings(auth="testing", access_log=True)
    logging_app = create_app(database, app.service.plugins, settings=settings)
    with caplog.at_level("INFO", "svc.access"):
        TestClient(logging_app).simulate_get("/written", headers={"traceparent": sent} if sent else {})
    [record] = caplog.records
    assert record.__dict__["fields"].get("trace_id") == trace_id
