"""Every answer says what caches and browsers may do; a proxy that keeps all it may keeps nothing stale."""

from __future__ import annotations

import contextlib
import http.server
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3

from svc.pipeline.binding import all_routes, bind_routes
from svc.plugins import load_plugins
from svc_blackbox.client import Client, Response
from svc_blackbox.nginx import running_nginx
from svc_blackbox.raw import exchange
from svc_blackbox.server import Server

FOR_EVER = "private, max-age=31536000, immutable"
CONTENT = os.urandom(300_000)
STREAMS = ("/system/events", "/events/stream", "/events/me")
"""Would go on for ever."""

PUBLIC = {
    "/",
    "/docs",
    "/docs/",
    "/docs/SKILL.md",
    "/docs/api",
    "/docs/llms.txt",
    "/docs/openapi.json",
    "/portal",
    "/share",
    "/system/health",
    "/system/openapi.json",
    "/blobs/config",
}

CACHE = """
    proxy_cache_path $directory/cache keys_zone=all:1m;
    server {
        listen 127.0.0.1:$port;
        location / {
            proxy_pass $url;
            proxy_cache all;
            # What an answer does not forbid is kept, errors too.
            proxy_cache_valid any 10m;
            add_header X-Cache $$upstream_cache_status always;
        }
    }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("caches") / "caches.svcdb").start()
    yield server
    server.close()


@pytest.fixture
def direct(server: Server) -> Iterator[Client]:
    with server.client() as client:
        yield client


@contextlib.contextmanager
def caching_proxy(directory: Path, url: str) -> Iterator[str]:
    """nginx with a cache in front of a server."""
    with running_nginx(directory, CACHE, url) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def proxy_url(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with caching_proxy(tmp_path_factory.mktemp("nginx"), server.url) as url:
        yield url


@pytest.fixture
def proxied(proxy_url: str) -> Iterator[Client]:
    with Client(proxy_url) as client:
        yield client


def requests_of_every_route() -> list[tuple[str, str]]:
    """Each method of each route of the default plugins, with something for the fields of its template."""
    plugins = load_plugins()
    routes = bind_routes(all_routes(plugins))
    assert len(routes) > 30
    values = {"hash": "0" * 64, "path": "there/file", "plugin_id": "backup", "name": "one"}
    targets = {
        route: re.sub(r"\{(\w+)[^}]*\}", lambda field: values.get(field[1], "x"), route.template)
        for route in routes
    }
    return sorted(
        (method, f"{target}?follow=false" if target in STREAMS else target)
        for route, target in targets.items()
        for method in route.allowed
    )


def assert_caching(response: Response, target: str) -> None:
    expected = {"no-cache"} if target.partition("?")[0] in PUBLIC else {"private, no-cache", "no-store"}
    if response.status == 204:
        expected = {"no-cache"}
    if response.status >= 400:
        expected = {"no-store"}
    assert response["Cache-Control"] in expected, (target, response.status)


@pytest.mark.parametrize("body", [None, b"{}", b"no json"])
def test_every_route_and_method(server: Server, body: bytes | None) -> None:
    with server.client() as client:
        client.store("/there/file", CONTENT)
    answered: set[int] = set()
    for method, target in requests_of_every_route():
        if method in ("DELETE", "POST") and target in ("/files/", "/engine/", "/links/"):
            continue
        headers = {"Content-Type": "application/json"} if body else {}
        with server.client() as client:
            response = client.request(method, target, body, headers)
            answered.add(response.status)
            assert_caching(response, target)
            assert "frame-ancestors" in response["Content-Security-Policy"], (method, target)
            if response.body and response.headers.get_content_type() == "application/json":
                is_file = method == "GET" and target.startswith(("/files/there", "/engine/there"))
                assert is_file or response.body.endswith((b"}\n", b"]\n")), (method, target)
    assert {200, 204, 400, 404} <= answered


def test_what_is_read_by_hash_is_kept_by_the_caller_alone(direct: Client) -> None:
    stored = direct.store("/fixed/file", CONTENT)
    direct.request("PUT", "/links/fixed/link", b'{"target": "/fixed/file"}')
    small = direct.store("/fixed/small", b"small")
    version = small["version"]
    etag = {"If-None-Match": f'"{stored["content_hash"]}"'}
    blob = f"/blobs/{blake3(b'small').hexdigest()}"
    for target, headers, status in (
        (f"/files/fixed/file?version={version}", {}, 200),
        (f"/files/fixed/file?version={version}", {"Range": "bytes=5-"}, 206),
        (f"/files/fixed/file?version={version}", etag, 304),
        (f"/files/fixed/?version={version}", {}, 200),
        (f"/files/fixed/?version={version}&depth=-1", {}, 200),
        (f"/links/fixed/link?version={version}", {}, 200),
        (blob, {}, 200),
        (blob, {"If-None-Match": f'"{blake3(b"small").hexdigest()}"'}, 304),
        (blob, {"Range": "bytes=1-2"}, 206),
    ):
        for method in ("GET", "HEAD"):
            response = direct.request(method, target, None, headers)
            # A range is for a GET alone (RFC 9110, 14.2).
            statuses = (status, 200) if method == "HEAD" and status == 206 else (status,)
            assert response.status in statuses, (method, target)
            assert response["Cache-Control"] == FOR_EVER, (method, target)
            assert "Authorization" in response["Vary"]


def test_names_that_can_move_are_asked_for_again(direct: Client) -> None:
    direct.store("/moving/file", b"one")
    assert direct.post("/versions/snapshots", {"name": "moving"}).status in (200, 201)
    assert direct.post("/versions/forks", {"name": "moving"}).status in (200, 201)
    for query in ("snapshot=moving", "fork=moving", f"at={int(time.time() * 1000)}"):
        for path in ("/files/moving/file", "/files/moving/"):
            response = direct.get(f"{path}?{query}")
            assert (response.status, response["Cache-Control"]) == (200, "private, no-cache"), query


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/3.0\r\nHost: x\r\n\r\n",
    ],
)
def test_what_the_worker_refuses_itself(server: Server, request_bytes: bytes) -> None:
    response = exchange(server.url, request_bytes)
    assert response is not None
    assert response.status >= 400
    assert response.headers["cache-control"] == "no-store"
    assert response.body.endswith(b"}\n")


def test_a_proxy_that_keeps_what_it_may_keeps_nothing_stale(direct: Client, proxied: Client) -> None:
    assert proxied.get("/files/proxied").status == 404
    direct.store("/proxied", b"one")
    assert proxied.get("/files/proxied").body == b"one", "a proxy kept a 404"
    direct.store("/proxied", b"two")
    assert proxied.get("/files/proxied").body == b"two", "a proxy kept a file"
    rows = proxied.get("/versions/log").body
    listed = proxied.get("/files/").body
    direct.store("/proxied-too", b"three")
    assert proxied.get("/versions/log").body != rows, "a proxy kept a log"
    assert proxied.get("/files/").body != listed, "a proxy kept a listing"
    version = direct.store("/proxied", b"four")["version"]
    for target in (
        "/blobs/config",
        "/system/health",
        "/files/deleted?path=/",
        f"/files/proxied?version={version}",
        f"/blobs/{blake3(b'four').hexdigest()}",
        "/nowhere",
    ):
        for _ in range(2):
            assert proxied.get(target)["X-Cache"] != "HIT", target


def test_the_proxy_of_these_tests_does_keep_things(tmp_path: Path) -> None:
    """Else the test above would prove nothing: the same nginx before a server that says nothing of caches."""

    class Silent(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Silent) as origin:
        threading.Thread(target=origin.serve_forever, daemon=True).start()
        with (
            caching_proxy(tmp_path, f"http://127.0.0.1:{origin.server_port}") as url,
            Client(url) as client,
        ):
            assert [client.get("/a")["X-Cache"] for _ in range(2)] == ["MISS", "HIT"]
        origin.shutdown()
