"""Errors have one shape wherever they come from; limits are told before the work is done."""

from __future__ import annotations

import json
import re

import pytest

from svc_blackbox.client import Client, assert_error, files
from svc_blackbox.raw import exchange
from svc_blackbox.server import Server


@pytest.mark.parametrize(
    "target", ["/no/such/route", "/file", "/filesx", "/blobs", "/system", "/%00", "/%ff"]
)
def test_an_unknown_route_is_404_in_the_one_shape(http: Client, target: str) -> None:
    response = http.get(target)
    assert response.status in (400, 404)
    assert_error(response, response.status)


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("POST", "/files/x"),
        ("PUT", "/blobs/config"),
        ("DELETE", "/blobs/check"),
        ("GET", "/blobs/commit"),
        ("PUT", "/system/health"),
        ("POST", "/links/x"),
        ("TRACE", "/files/x"),
        ("CONNECT", "/files/x"),
        ("PROPFIND", "/files/x"),
        ("BREW", "/files/x"),
    ],
)
def test_a_method_that_a_route_does_not_take_is_405(http: Client, method: str, target: str) -> None:
    response = http.request(method, target, b"")
    if method in ("CONNECT", "BREW") and response.status in (400, 501):
        assert_error(response, response.status)
        return
    assert_error(response, 405, "METHOD_NOT_ALLOWED")
    assert method not in re.split(r"\s*,\s*", response["Allow"])
    assert response["Allow"]


def test_every_answer_has_a_request_id_of_its_own(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"")
    targets = [files(f"{area}/f"), files(area), files(f"{area}/missing"), "/no/route", "/system/health"]
    identities = [http.get(target)["X-Request-Id"] for target in targets * 3]
    assert len(set(identities)) == len(identities)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1,", b"nope", b"\xff\xff", b'{"a": NaN}', b"[" * 300_000, b"\x00"]
)
@pytest.mark.parametrize(
    "route",
    [
        "/files/batch",
        "/files/fetch",
        "/files/copy",
        "/files/mkdir",
        "/files/download",
        "/files/restore",
        "/blobs/check",
        "/blobs/commit",
    ],
)
def test_a_body_that_is_not_json_is_400_on_every_route(http: Client, route: str, body: bytes) -> None:
    response = http.request("POST", route, body, {"Content-Type": "application/json"})
    assert_error(response, 400, "INVALID_INPUT")


def test_a_json_route_refuses_another_media_type(http: Client) -> None:
    response = http.request("POST", "/files/mkdir", b"<path/>", {"Content-Type": "application/xml"})
    assert_error(response, 415, "UNSUPPORTED_MEDIA_TYPE")


def test_an_error_repeats_no_markup_and_no_secret(http: Client) -> None:
    response = http.get("/files/<script>alert(1)</script>", {"Authorization": "Bearer s3cr3t-t0k3n"})
    assert response.status == 404
    assert response.headers.get_content_type() == "application/json"
    assert b"s3cr3t" not in response.body


def test_a_json_body_over_its_limit_is_413_before_it_is_sent(shared_server: Server) -> None:
    response = exchange(
        shared_server.url,
        b"POST /files/batch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 41943040\r\n\r\n{",
    )
    assert response is not None
    assert response.status == 413
    assert json.loads(response.body)["code"] == "PAYLOAD_TOO_LARGE"


def test_a_chunked_json_body_over_its_limit_is_413(http: Client) -> None:
    piece = b" " * (1 << 20)
    try:
        response = http.request(
            "POST",
            "/files/mkdir",
            (piece for _ in range(40)),
            {"Content-Type": "application/json", "Transfer-Encoding": "chunked"},
            encode_chunked=True,
        )
    except (BrokenPipeError, ConnectionResetError):
        return
    assert_error(response, 413, "PAYLOAD_TOO_LARGE")


def test_a_file_over_its_limit_is_413_before_it_is_sent(shared_server: Server, area: str) -> None:
    size = (10 << 30) + 1
    response = exchange(
        shared_server.url,
        f"PUT {files(area)}/huge HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\nx".encode(),
    )
    assert response is not None
    assert response.status == 413
    value = json.loads(response.body)
    assert value["code"] == "PAYLOAD_TOO_LARGE"
    assert value["limit"] == 10 << 30


def test_health_is_public_and_says_what_this_is(http: Client) -> None:
    response = http.get("/system/health")
    assert response.status == 200
    value = response.json()
    assert value["status"] in ("starting", "healthy")
    assert value["service"] == "svc"
    assert re.match(r"\d+\.\d+", value["version"])


def test_nothing_above_was_an_internal_error(shared_server: Server, http: Client) -> None:
    assert http.get("/system/health").json()["status"] == "healthy"
    assert "Traceback" not in shared_server.log_text()
