"""Routes, paths, methods, CORS, request ids."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import TestClient, create_environ

from svc.database import Database
from svc.errors import PluginError
from svc.pipeline import Application, Operation, PipelineSettings, check_route, create_app, requires
from svc.plugins import Plugins, Route, disable, initialize


def call(app: Application, path_info: str, method: str = "GET", **more: Any) -> int:
    """The status of a request whose PATH_INFO is given as a server gives it."""
    environ = create_environ("/", method=method, headers={"Authorization": "Bearer root"})
    environ |= {"PATH_INFO": path_info, **more}
    statuses: list[str] = []

    def start(status: str, _headers: Any, _info: Any = None) -> Any:
        statuses.append(status)

    body = app(environ, start)
    list(body)
    close = getattr(body, "close", None)
    if close is not None:
        close()
    return int(statuses[0][:3])


@pytest.mark.parametrize(
    ("path", "segments"),
    [
        ("/things/a/b", "a|b"),
        ("/things/a//./b/", "a|b"),
        ("/things", ""),
        ("/things/", ""),
        ("/things/query", "query"),
        ("/things/query/x", "query|x"),
        ("/things/a%2Fb", "a|b"),
        ("/things/a%252Fb", "a%2Fb"),
    ],
)
def test_a_responder_gets_its_path_as_segments(client: TestClient, path: str, segments: str) -> None:
    assert client.simulate_get(path).headers["x-path"] == segments


@pytest.mark.parametrize(
    "path_info",
    ["/things/../x", "/things/a\x00b", "/things/\x1f", "/things/\xff", "/kinds\xff", "/things/" + "x" * 256],
)
def test_a_path_that_breaks_the_rules_is_400(app: Application, path_info: str) -> None:
    assert call(app, path_info) == 400


def test_a_malformed_escape_is_400(app: Application) -> None:
    assert call(app, "/things/%zz", RAW_URI="/things/%zz") == 400
    assert call(app, "/things/a", RAW_URI="/things/a?x=%zz") == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "FOO"])
@pytest.mark.parametrize("path", ["/things/.svc-system", "/things/.system/users", "/things/./.svc-system/x"])
def test_the_system_namespace_is_not_there_in_any_method(
    anonymous: TestClient, app: Application, method: str, path: str
) -> None:
    assert call(app, path, method) == 404
    if method != "FOO":
        assert anonymous.simulate_request(method, path).status_code == 404


def test_an_unknown_route_is_404_and_an_unknown_method_405(client: TestClient) -> None:
    assert client.simulate_get("/nowhere").json["code"] == "NOT_FOUND"
    answer = client.simulate_patch("/things/a")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS, PUT"
    assert answer.json["code"] == "METHOD_NOT_ALLOWED"


def test_a_route_inside_a_path_route_hides_no_file_of_its_name(client: TestClient) -> None:
    assert client.simulate_post("/things/query", json={"names": ["a"]}).status_code == 200
    assert client.simulate_put("/things/query", body="x").json["path"] == ["query"]
    assert client.simulate_post("/things/other", json={}).status_code == 405


def test_options_says_what_may_be_done(anonymous: TestClient, app: Application) -> None:
    answer = anonymous.simulate_options("/things/a")
    assert (answer.status_code, answer.headers["allow"]) == (204, "GET, HEAD, OPTIONS, PUT")
    assert call(app, "*", "OPTIONS") == 204


def test_the_routes_of_a_plugin_end_with_it(app: Application, client: TestClient, plugins: Plugins) -> None:
    assert client.simulate_get("/kinds").status_code == 200
    live = app.service.live
    assert live is not None
    disable(live.database, plugins, "test.routes")
    for method, path in (
        ("GET", "/kinds"),
        ("PUT", "/things/a"),
        ("OPTIONS", "/things/a"),
        ("PATCH", "/kinds"),
    ):
        assert client.simulate_request(method, path).status_code == 404
    assert client.simulate_get("/system/health").status_code == 200


def test_without_its_auth_plugin_nothing_is_served(
    app: Application, client: TestClient, plugins: Plugins
) -> None:
    live = app.service.live
    assert live is not None
    disable(live.database, plugins, "test.auth")
    assert client.simulate_get("/things/a").status_code == 503


class Undeclared:
    def on_get(self, req: Any, resp: Any) -> None: ...


class WrongField:
    @requires(Operation.READ, path="other")
    def on_get(self, req: Any, resp: Any, path: Any) -> None: ...


@pytest.mark.parametrize("resource", [Undeclared(), WrongField()])
def test_a_responder_that_does_not_say_what_it_needs_is_refused(resource: object) -> None:
    with pytest.raises(PluginError):
        check_route(Route("/x/{path:path}", resource, None, "p"))


def test_a_page_of_an_allowed_origin_may_call(client: TestClient) -> None:
    answer = client.simulate_options(
        "/things/a",
        headers={
            "Origin": "https://app.example",
            "Access-Control-Request-Method": "PUT",
            "Access-Control-Request-Headers": "authorization, if-match",
        },
    )
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert "PUT" in answer.headers["access-control-allow-methods"]
    assert answer.headers["access-control-allow-headers"] == "authorization, if-match"
    failed = client.simulate_get("/things/conflict", headers={"Origin": "https://app.example"})
    assert failed.headers["access-control-allow-origin"] == "https://app.example"
    assert failed.headers["access-control-expose-headers"] == (
        "Accept-Ranges, Content-Length, Content-Range, ETag, Last-Modified, Location, Retry-After, "
        "X-Request-Id, X-Thing"
    )


def test_a_page_of_another_origin_may_not(client: TestClient) -> None:
    answer = client.simulate_get("/things/a", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["vary"] == "Origin"


@pytest.mark.parametrize("given", ["abc-1.2:3", "a" * 128])
def test_a_well_formed_request_id_is_kept(client: TestClient, given: str) -> None:
    assert client.simulate_get("/kinds", headers={"X-Request-Id": given}).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a b", "a" * 129, "é", '"x"'])
def test_another_request_id_is_replaced(client: TestClient, given: str) -> None:
    answer = client.simulate_get("/kinds", headers={"X-Request-Id": given})
    assert len(answer.headers["x-request-id"]) == 32


def test_a_request_leaves_nothing_to_the_garbage_collector(app: Application) -> None:
    call(app, "/things/a")
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            assert call(app, "/things/a") == 200
        assert gc.collect() < 50
    finally:
        gc.enable()


def test_no_answer_is_taken_for_another_type(client: TestClient, anonymous: TestClient) -> None:
    paths = ("/system/health", "/things/a", "/things/boom", "/things/early", "/none", "/kinds", "/")
    for caller in (client, anonymous):
        for path in paths:
            assert caller.simulate_get(path).headers["x-content-type-options"] == "nosniff", path


@pytest.mark.parametrize("hsts_s", [0, 31_536_000])
def test_browsers_that_came_by_tls_are_told_to_come_by_nothing_else_where_that_is_wanted(
    tmp_path: Path, plugins: Plugins, hsts_s: int
) -> None:
    database = Database(tmp_path / "hsts.svcdb")
    assert initialize(database, plugins) == ()
    app = create_app(database, plugins, settings=PipelineSettings(auth="testing", hsts_s=hsts_s))
    client = TestClient(app, headers={"Authorization": "Bearer root"})
    for path in ("/system/health", "/things/a", "/things/boom", "/none"):
        by_tls = client.simulate_get(path, protocol="https").headers.get("strict-transport-security")
        assert by_tls == ("max-age=31536000; includeSubDomains" if hsts_s else None), path
        assert "strict-transport-security" not in client.simulate_get(path).headers
    app.service.close()


def test_every_answer_says_that_it_loads_nothing_and_stands_in_no_frame(
    client: TestClient, anonymous: TestClient
) -> None:
    paths = ("/system/health", "/things/a", "/things/boom", "/things/early", "/none", "/kinds", "/")
    for caller in (client, anonymous):
        for path in paths:
            for method in ("GET", "HEAD", "OPTIONS", "PATCH"):
                answer = caller.simulate_request(method, path)
                policy = answer.headers["content-security-policy"].split("; ")
                assert set(policy) >= {"default-src 'none'", "frame-ancestors 'none'"}, (method, path)
