"""What caches may do with an answer, whatever made it; and the newline at the end of JSON."""

from __future__ import annotations

from typing import Any

import falcon
import pytest
from falcon.testing import TestClient

from svc.pipeline import (
    PipelineSettings,
    create_service_app,
    mark_immutable,
    public,
    requires_identity,
    vary_by,
)
from svc.pipeline.framework import LeanResponse
from svc.pipeline.service import Service
from svc.plugins import Plugins, Route, select_auth_mode
from svc_worker.refusals import refusal_bytes

FOR_EVER = "max-age=31536000, immutable"


@pytest.mark.parametrize(
    ("method", "path", "status", "expected"),
    [
        ("GET", "/things/a", 200, "private, no-cache"),
        ("HEAD", "/things/a", 200, "private, no-cache"),
        ("GET", "/kinds", 200, "no-cache"),
        ("HEAD", "/kinds", 200, "no-cache"),
        ("PUT", "/kinds", 200, "private, no-cache"),
        ("OPTIONS", "/kinds", 204, "no-cache"),
        ("GET", "/system/health", 200, "no-cache"),
        ("GET", "/nowhere", 404, "no-store"),
        ("HEAD", "/nowhere", 404, "no-store"),
        ("POST", "/kinds", 405, "no-store"),
        ("POST", "/things/query", 400, "no-store"),
        ("GET", "/things/%2e%2e", 400, "no-store"),
        ("GET", "/things/conflict", 409, "no-store"),
        ("GET", "/things/boom", 500, "no-store"),
        ("GET", "/things/early", 409, "no-store"),
    ],
)
def test_every_answer_says_what_caches_may_do(
    client: TestClient, method: str, path: str, status: int, expected: str
) -> None:
    answer = client.simulate_request(method, path)
    assert (answer.status_code, answer.headers["cache-control"]) == (status, expected)


@pytest.mark.parametrize(
    ("headers", "status", "expected"),
    [
        ({"Range": "bytes=0-1"}, 206, "private, no-cache"),
        ({"Range": "bytes=0-1,3-4"}, 206, "private, no-cache"),
        ({"If-None-Match": '"abc"'}, 304, "private, no-cache"),
        ({"If-Match": '"x"'}, 412, "no-store"),
        ({"Range": "bytes=99-"}, 416, "no-store"),
    ],
)
def test_so_do_parts_and_conditions(
    client: TestClient, headers: dict[str, str], status: int, expected: str
) -> None:
    answer = client.simulate_get("/things/a", headers=headers)
    assert (answer.status_code, answer.headers["cache-control"]) == (status, expected)


def test_refused_credentials_are_not_kept(anonymous: TestClient) -> None:
    answer = anonymous.simulate_get("/things/a")
    assert (answer.status_code, answer.headers["cache-control"]) == (401, "no-store")


def test_an_answer_while_the_server_starts_is_not_kept(plugins: Plugins) -> None:
    settings = PipelineSettings(auth="testing")
    app = create_service_app(Service(plugins, select_auth_mode(plugins, "testing"), 0.0), settings)
    client = TestClient(app)
    for path in ("/system/health", "/things/a", "/kinds"):
        answer = client.simulate_get(path)
        assert (answer.status_code, answer.headers["cache-control"]) == (503, "no-store"), path
        assert answer.content.endswith(b"}\n"), path


class KeptResource:
    @public
    def on_get(self, req: Any, resp: falcon.Response) -> None:
        mark_immutable(resp)
        resp.status = req.get_param("status", default="200 OK")

    @requires_identity
    def on_put(self, req: Any, resp: falcon.Response) -> None:
        mark_immutable(resp)
        resp.set_header("Vary", "Accept")

    @requires_identity
    def on_delete(self, req: Any, resp: falcon.Response) -> None:
        resp.set_header("Cache-Control", "no-store, private")

    @public
    def on_post(self, req: Any, resp: falcon.Response) -> None:
        resp.media = {"a": 1}


@pytest.fixture
def kept(app: Any) -> TestClient:
    from svc.pipeline.binding import add_routes, bind_routes

    add_routes(app, bind_routes([Route("/kept", KeptResource(), None, "test.routes")]))
    return TestClient(app, headers={"Authorization": "Bearer root"})


def test_what_is_immutable_is_kept_by_whom_it_was_meant_for(kept: TestClient) -> None:
    answer = kept.simulate_get("/kept")
    assert (answer.headers["cache-control"], answer.headers.get("vary")) == (f"public, {FOR_EVER}", "Origin")
    answer = kept.simulate_put("/kept")
    assert answer.headers["cache-control"] == f"private, {FOR_EVER}"
    assert answer.headers["vary"] == "Accept, Authorization", "one browser may serve several callers"


@pytest.mark.parametrize("status", ["404", "404 Not Found", "503 Service Unavailable"])
def test_an_error_is_not_kept_though_its_route_calls_it_immutable(kept: TestClient, status: str) -> None:
    assert kept.simulate_get("/kept", params={"status": status}).headers["cache-control"] == "no-store"


def test_a_route_may_be_stricter(kept: TestClient) -> None:
    assert kept.simulate_delete("/kept").headers["cache-control"] == "no-store, private"


def test_vary_names_a_field_once() -> None:
    resp = LeanResponse(falcon.ResponseOptions())
    for name in ("Origin", "Authorization", "authorization"):
        vary_by(resp, name)
    assert resp.get_header("vary") == "Origin, Authorization"


@pytest.mark.parametrize(
    "path", ["/kinds", "/system/health", "/nowhere", "/things/conflict", "/things/early"]
)
def test_json_ends_with_one_newline_that_its_length_counts(client: TestClient, path: str) -> None:
    answer = client.simulate_get(path)
    assert answer.content.endswith(b"}\n")
    assert not answer.content.endswith(b"\n\n")
    assert answer.headers["content-length"] == str(len(answer.content))
    if path != "/things/early":  # a HEAD asks its stream for nothing
        assert client.simulate_head(path).headers["content-length"] == answer.headers["content-length"]


def test_so_does_the_media_of_a_response(kept: TestClient) -> None:
    answer = kept.simulate_post("/kept")
    assert (answer.content, answer.headers["content-length"]) == (b'{"a":1}\n', "8")


@pytest.mark.parametrize("tail", [{}, {"has_more": False}])
def test_so_does_a_stream(tail: dict[str, Any]) -> None:
    from svc.pipeline import send_json_items

    resp = LeanResponse(falcon.ResponseOptions())
    send_json_items(resp, "items", [1, 2], lambda: tail)
    expected = b'{"items":[1,2],"has_more":false}\n' if tail else b'{"items":[1,2]}\n'
    assert b"".join(resp.stream) == expected


def test_so_does_what_the_worker_itself_refuses() -> None:
    head, _, body = refusal_bytes(400, "No.", "INVALID_INPUT", "").partition(b"\r\n\r\n")
    assert b"\r\nCache-Control: no-store\r\n" in head
    assert body.endswith(b"}\n")
    assert f"Content-Length: {len(body)}\r\n".encode() in head
