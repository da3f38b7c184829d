"""HTTP itself: keep-alive, pipelining, chunked bodies, Expect, and clients that break the rules."""

from __future__ import annotations

import time

import pytest

from svc_blackbox.client import Client, assert_error, files
from svc_blackbox.raw import RawConnection, exchange
from svc_blackbox.server import Server


def put_head(path: str, *headers: str) -> bytes:
    lines = [f"PUT {files(path)} HTTP/1.1", "Host: localhost", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


GET_HEALTH = b"GET /system/health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_expect_100_continue_is_answered_before_the_body(
    shared_server: Server, http: Client, area: str
) -> None:
    with RawConnection(shared_server.url) as connection:
        connection.send(put_head(f"{area}/f", "Content-Length: 5", "Expect: 100-continue"))
        response = connection.response()
        assert response is not None
        assert response.status == 100
        connection.send(b"hello")
        response = connection.response()
        assert response is not None
        assert response.status == 201
    assert http.read(f"{area}/f") == b"hello"


def test_expect_is_refused_before_the_body_when_it_would_be_in_vain(
    shared_server: Server, http: Client, area: str
) -> None:
    http.store(f"{area}/f", b"kept")
    head = put_head(f"{area}/f", "Content-Length: 5", "Expect: 100-continue", "If-None-Match: *")
    with RawConnection(shared_server.url) as connection:
        connection.send(head)
        response = connection.response()
        assert response is not None
        if response.status == 100:
            connection.send(b"hello")
            response = connection.response()
            assert response is not None
        assert response.status == 412
    assert http.read(f"{area}/f") == b"kept"


def test_a_connection_serves_on_after_errors(http: Client, area: str) -> None:
    for _ in range(3):
        assert_error(http.get(files(f"{area}/missing")), 404)
        assert_error(http.get("/no/route"), 404)
        assert_error(http.post("/files/mkdir", {"path": 5}), 400)
        assert_error(http.request("DELETE", "/system/health"), 405)
        http.store(f"{area}/f", b"fine")
        assert http.read(f"{area}/f") == b"fine"


def test_a_body_that_nobody_reads_does_not_become_the_next_request(shared_server: Server, area: str) -> None:
    smuggled = f"DELETE {files(area)} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    for target in ("/no/route", "/system/health", f"{files(area)}/missing"):
        with RawConnection(shared_server.url) as connection:
            head = f"GET {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(smuggled)}\r\n\r\n".encode()
            connection.send(head + smuggled + GET_HEALTH)
            first = connection.response()
            assert first is not None
            assert first.status in (200, 400, 404)
            second = connection.response()
            assert second is None or b'"service"' in second.body


def test_pipelined_requests_are_answered_in_order(shared_server: Server, http: Client, area: str) -> None:
    for number in range(5):
        http.store(f"{area}/{number}", b"%d" % number)
    requests = b"".join(
        f"GET {files(area)}/{number} HTTP/1.1\r\nHost: x\r\n\r\n".encode() for number in (0, 1, 2, 3, 4)
    )
    with RawConnection(shared_server.url) as connection:
        connection.send(put_head(f"{area}/new", "Content-Length: 3") + b"new" + requests)
        first = connection.response()
        assert first is not None
        assert first.status == 201
        for number in range(5):
            response = connection.response()
            assert response is not None
            assert response.body == b"%d" % number


def test_connection_close_and_http_1_0_end_the_connection(shared_server: Server) -> None:
    for request in (
        b"GET /system/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /system/health HTTP/1.0\r\n\r\n",
    ):
        with RawConnection(shared_server.url) as connection:
            connection.send(request)
            response = connection.response()
            assert response is not None
            assert response.status == 200
            assert "chunked" not in response.headers.get("transfer-encoding", "") or b"1.1" in request
            assert connection.closed_by_server()


CHUNKED = "Transfer-Encoding: chunked"


@pytest.mark.parametrize(
    "body",
    [
        b"5\r\nhello\r\n0\r\n\r\n",
        b"5;extension=value\r\nhello\r\n0\r\n\r\n",
        b"1\r\nh\r\n4\r\nello\r\n0\r\nX-Checksum: 1\r\n\r\n",
        b"00000005\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_chunked_bodies_of_every_legal_form(
    shared_server: Server, http: Client, area: str, body: bytes
) -> None:
    response = exchange(shared_server.url, put_head(f"{area}/f", CHUNKED) + body)
    assert response is not None
    assert response.status == 201
    assert http.read(f"{area}/f") == b"hello"


@pytest.mark.parametrize(
    "body",
    [
        b"zz\r\nhello\r\n0\r\n\r\n",
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhelloXX0\r\n\r\n",
        b"\r\nhello\r\n",
        b"ffffffffffffffffffff\r\nhello",
        b"5 5\r\nhello\r\n0\r\n\r\n",
        b"5\nhello\n0\n\n",
    ],
)
def test_broken_chunk_framing_is_400_and_stores_nothing(
    shared_server: Server, http: Client, area: str, body: bytes
) -> None:
    response = exchange(shared_server.url, put_head(f"{area}/f", CHUNKED) + body, finish=True)
    assert response is None or response.status == 400, response
    assert http.get(files(f"{area}/f")).status == 404


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([CHUNKED], b""),
        ([CHUNKED], b"5\r\nhel"),
        ([CHUNKED], b"5\r\nhello\r\n"),
        ([CHUNKED], b"5\r\nhello\r\n0\r\n"),
        (["Content-Length: 10"], b""),
        (["Content-Length: 10"], b"hello"),
        (["Content-Length: 1000000"], b"x" * 999_999),
    ],
)
def test_a_cut_body_is_never_stored(
    shared_server: Server, http: Client, area: str, headers: list[str], body: bytes
) -> None:
    http.store(f"{area}/old", b"old")
    for name in ("new", "old"):
        response = exchange(shared_server.url, put_head(f"{area}/{name}", *headers) + body, finish=True)
        assert response is None or response.status == 400, response
    assert http.get(files(f"{area}/new")).status == 404
    assert http.read(f"{area}/old") == b"old"


@pytest.mark.parametrize(
    "headers",
    [
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Content-Length: 5", "Content-Length: 6"],
        ["Content-Length: 5, 6"],
        ["Content-Length: -5"],
        ["Content-Length: +5"],
        ["Content-Length: 5x"],
        ["Content-Length: 0x5"],
        ["Content-Length: "],
        ["Transfer-Encoding: gzip"],
        ["Transfer-Encoding: chunked, identity"],
        ["Transfer-Encoding: xchunked"],
        ["Transfer-Encoding : chunked"],
        ["Bad Header: x", "Content-Length: 5"],
        ["X: a\x00b", "Content-Length: 5"],
        [": no name", "Content-Length: 5"],
        ["no colon", "Content-Length: 5"],
    ],
)
def test_ambiguous_or_illegal_headers_are_refused(
    shared_server: Server, http: Client, area: str, headers: list[str]
) -> None:
    body = b"5\r\nhello\r\n0\r\n\r\n" if "Transfer" in headers[-1] else b"hello"
    response = exchange(shared_server.url, put_head(f"{area}/f", *headers) + body, finish=True)
    assert response is None or response.status in (400, 501), response
    assert http.get(files(f"{area}/f")).status == 404


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"",
        b"\r\n\r\n",
        b"GARBAGE\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /system/health\r\n\r\n",
        b"GET /system/health HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET /system/health HTTP/1.1\r\n\r\n",
        b"GET /system/health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"GET  /system/health HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET system/health HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET * HTTP/1.1\r\nHost: x\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://elsewhere/system/health HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /files/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 50_000 + b"\r\n",
    ],
)
def test_requests_that_are_none_are_refused_or_cut_off(shared_server: Server, request_bytes: bytes) -> None:
    response = exchange(shared_server.url, request_bytes, finish=True)
    assert response is None or response.status < 500 or response.status in (501, 505), response
    if response is not None and response.status >= 400 and response.body:
        assert response.headers["content-type"].startswith("application/json")
    after = exchange(shared_server.url, GET_HEALTH)
    assert after is not None
    assert after.status == 200


def test_a_body_that_comes_byte_by_byte_is_stored(shared_server: Server, http: Client, area: str) -> None:
    with RawConnection(shared_server.url) as connection:
        for byte in put_head(f"{area}/f", "Content-Length: 20"):
            connection.send(bytes([byte]))
        for number in range(20):
            connection.send(b"%d" % (number % 10))
            time.sleep(0.02)
        response = connection.response()
        assert response is not None
        assert response.status == 201
    assert http.read(f"{area}/f") == b"01234567890123456789"


def test_a_client_that_leaves_in_the_middle_of_a_download_harms_nobody(
    shared_server: Server, http: Client, area: str
) -> None:
    http.store(f"{area}/large", bytes(20 << 20))
    for _ in range(5):
        with RawConnection(shared_server.url) as connection:
            connection.send(f"GET {files(area)}/large HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert connection.socket.recv(1000)
    assert len(http.read(f"{area}/large")) == 20 << 20


def test_a_head_of_a_large_file_sends_no_byte_of_it(shared_server: Server, http: Client, area: str) -> None:
    http.store(f"{area}/large", bytes(5 << 20))
    with RawConnection(shared_server.url) as connection:
        connection.send(f"HEAD {files(area)}/large HTTP/1.1\r\nHost: x\r\n\r\n".encode() + GET_HEALTH)
        head = connection.response(head=True)
        assert head is not None
        assert head.headers["content-length"] == str(5 << 20)
        health = connection.response()
        assert health is not None
        assert b'"service"' in health.body


def test_no_answer_carries_more_than_one_framing(shared_server: Server, http: Client, area: str) -> None:
    http.store(f"{area}/f", b"x" * 100_000)
    for target in (files(f"{area}/f"), files(area), files(f"{area}/missing"), "/system/health"):
        response = http.get(target)
        assert ("Content-Length" in response) != ("Transfer-Encoding" in response)
