"""Every limit that ``svc start`` can set, at its edge: so much is taken, one more is refused by its name."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from svc_blackbox.client import Client, Response, assert_error, files
from svc_blackbox.raw import RawConnection, RawResponse
from svc_blackbox.server import Server
from svc_server.options import OPTIONS

FILE, JSON, BATCH = 1000, 600, 5
GIBIBYTE = 1 << 30

EDGES = {
    "max-body": ["test_a_file_has_so_many_bytes", "test_a_limit_of_files_may_be_larger_than_the_usual_one"],
    "max-json-body": ["test_a_json_body_has_so_many_bytes"],
    "max-batch": ["test_a_request_names_so_many_things"],
    "max-tree-entries": ["test_a_tree_has_so_many_entries"],
    "min-rate": ["test_an_upload_comes_at_least_so_fast"],
    "body-timeout": ["test_a_client_may_be_silent_for_so_long"],
    "graceful-timeout": ["test_requests_have_so_long_to_end_after_a_stop"],
}
"""Options that limit something, each with the tests of its edge below."""

NOT_LIMITS = {
    "database": "names a file",
    "auth": "names a mode",
    "host": "names an address",
    "port": "names a port",
    "workers": "a number of processes: more is slower, not refused",
    "worker-class": "a choice of three; the tests here run with two of them",
    "tls-cert": "names a file",
    "tls-key": "names a file",
    "plugins": "a list of names; see the tests of plugins",
    "plugin-option": "a setting of a plugin; each plugin tests its own",
    "cors-origins": "a list of origins; see the tests of the pipeline",
    "trusted-proxies": "a list of addresses; see the tests of the pipeline",
    "hsts": "what browsers are told; see the tests of the pipeline",
    "log-format": "a choice of two",
    "access-log": "on or off",
    "background": "on or off",
}


@pytest.mark.parametrize("name", [option.name for option in OPTIONS])
def test_every_option_has_a_test_of_its_edge_or_a_reason_for_none(name: str) -> None:
    assert (name in EDGES) != (name in NOT_LIMITS)
    for test in EDGES.get(name, []):
        assert callable(globals()[test])


@pytest.fixture(scope="module", params=["http1", "gevent"])
def narrow(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of small limits, the one of JSON below that of files."""
    server = Server(
        tmp_path_factory.mktemp("narrow") / "narrow.svcdb",
        *("--max-body", str(FILE), "--max-json-body", str(JSON), "--max-batch", str(BATCH)),
        *("--worker-class", request.param, "--workers", "1"),
    )
    yield server.start()
    server.close()


@pytest.fixture
def client(narrow: Server) -> Iterator[Client]:
    with Client(narrow.url) as client:
        yield client


def send(
    client: Client, method: str, target: str, body: bytes, *, chunked: bool, media_type: str
) -> Response:
    headers = {"Content-Type": media_type}
    if not chunked:
        return client.request(method, target, body, headers)
    pieces = [body[at : at + 97] for at in range(0, len(body), 97)]
    headers["Transfer-Encoding"] = "chunked"
    return client.request(method, target, iter(pieces), headers, encode_chunked=True)


def assert_too_large(response: Response, limit: int) -> None:
    value = assert_error(response, 413, "PAYLOAD_TOO_LARGE")
    assert value["limit"] == limit
    assert str(limit) in value["error"]


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("route", ["/files", "/engine"])
def test_a_file_has_so_many_bytes(client: Client, area: str, route: str, chunked: bool) -> None:
    def put(size: int) -> Response:
        body, target = bytes(size), f"{route}{area}/{size}"
        return send(client, "PUT", target, body, chunked=chunked, media_type="application/octet-stream")

    assert put(FILE).status == 201
    for size in (FILE + 1, 5 * FILE, 500_000):
        assert_too_large(put(size), FILE)
        assert client.get(files(f"{area}/{size}")).status == 404
    assert put(FILE - 1).status == 201


@pytest.mark.parametrize("worker", ["http1", "gevent"])
def test_a_limit_of_files_may_be_larger_than_the_usual_one(
    new_server: Callable[..., Server], worker: str
) -> None:
    limit = 12 * GIBIBYTE
    server = new_server("wide", "--max-body", str(limit), "--worker-class", worker, "--workers", "1")

    def declared(size: int) -> RawResponse:
        with RawConnection(server.url) as connection:
            head = f"PUT /files/huge HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"
            connection.send(head.encode() + b"x" * 1000)
            connection.finish_sending()
            answer = connection.response()
            assert answer is not None
            return answer

    assert declared(limit).status == 400, "it is taken, and breaks off"
    refused = declared(limit + 1)
    assert (refused.status, json.loads(refused.body)["limit"]) == (413, limit)


def test_every_way_to_a_file_has_the_limit_of_files(new_server: Callable[..., Server]) -> None:
    """The one limit holds where a file is made of something else than a body of its own."""
    server = new_server("ways", "--max-body", "100")
    with server.client() as client:
        for size, status in ((100, 200), (101, 413)):
            put = {"op": "put", "path": f"/batch-{size}", "content": "x" * size}
            answer = client.post("/files/batch", {"operations": [put]})
            assert answer.status == status
            merged = json.dumps({"a": "x" * (size - len('{"a":""}'))})
            answer = client.request(
                "PATCH",
                f"/files/merge-{size}",
                merged.encode(),
                {"Content-Type": "application/merge-patch+json"},
            )
            assert answer.status == (201 if status == 200 else 413)
        stored = client.request("POST", "/versions/export", None)
        assert len(stored.body) > 100
        taken = client.request(
            "POST", "/versions/import", stored.body, {"Content-Type": "application/octet-stream"}
        )
        assert taken.status == 200, "what is imported has a limit of its own"


JSON_ROUTES = [
    ("POST", "/files/mkdir", b'{"path": "/made-%d", "exist_ok": true}', "application/json"),
    ("POST", "/files/batch", b'{"operations": [{"op": "mkdir", "path": "/b-%d"}]}', "application/json"),
    ("POST", "/files/fetch", b'{"paths": ["/none-%d"]}', "application/json"),
    ("POST", "/blobs/check", b'{"hashes": []}', "application/json"),
    ("PUT", "/links/link-%d", b'{"target": "/somewhere"}', "application/json"),
    ("PATCH", "/files/merged-%d", b'{"a": 1}', "application/merge-patch+json"),
    ("POST", "/versions/snapshots", b'{"name": "s-%d"}', "application/json"),
]


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("method", "target", "body", "media_type"), JSON_ROUTES)
def test_a_json_body_has_so_many_bytes(
    client: Client, method: str, target: str, body: bytes, media_type: str, chunked: bool
) -> None:
    body = body % chunked if b"%d" in body else body
    target = target % chunked if "%d" in target else target
    for size in (JSON + 1, 2 * FILE, 500_000):
        answer = send(client, method, target, body.ljust(size), chunked=chunked, media_type=media_type)
        assert_too_large(answer, JSON)
    answer = send(client, method, target, body.ljust(JSON), chunked=chunked, media_type=media_type)
    assert answer.status in (200, 201), answer.body


def test_a_request_names_so_many_things(client: Client, area: str) -> None:
    short = f"/{len(area)}"  # bodies are small here, and the names of areas are not
    assert client.post("/files/mkdir", {"path": short, "exist_ok": True}).status in (200, 201)

    def operations(count: int) -> object:
        return {"operations": [{"op": "mkdir", "path": f"{short}/{number}"} for number in range(count)]}

    def paths(count: int) -> list[str]:
        return [f"{short}/{number}" for number in range(count)]

    def new_files(count: int) -> object:
        return {"files": [{"path": f"{short}/c{number}", "chunk_hashes": []} for number in range(count)]}

    for target, body in (
        ("/files/batch", operations),
        ("/files/copy", lambda count: {"paths": paths(count), "destination": f"{short}-copy"}),
        ("/files/download", lambda count: {"paths": paths(count)}),
        ("/files/fetch", lambda count: {"paths": paths(count)}),
        ("/blobs/commit", new_files),
    ):
        assert_too_large(client.post(target, body(BATCH + 1)), BATCH)
        answer = client.post(target, body(BATCH))
        assert answer.status in (200, 201), (target, answer.body)


@pytest.mark.parametrize("worker", ["http1", "gevent"])
def test_a_client_may_be_silent_for_so_long(new_server: Callable[..., Server], worker: str) -> None:
    server = new_server("silent", "--body-timeout", "2", "--worker-class", worker, "--workers", "1")
    head = b"PUT /files/slow HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n"
    with RawConnection(server.url) as connection:
        connection.send(head + b"a")
        for byte in (b"b", b"c"):
            time.sleep(1)
            connection.send(byte)
        answer = connection.response()
        assert answer is not None
        assert answer.status == 201
    with RawConnection(server.url) as connection:
        connection.send(head + b"a")
        began = time.monotonic()
        answer = connection.response()
        assert answer is not None
        assert answer.status == 408
        assert 1.5 < time.monotonic() - began < 10


def test_a_tree_has_so_many_entries(new_server: Callable[..., Server]) -> None:
    server = new_server("entries", "--max-tree-entries", "4", "--workers", "1")
    with server.client() as client:
        for name in ("/d/a", "/d/b", "/c"):
            assert client.put_file(name, b"x").status == 201
        for name in ("/e", "/d/e"):
            assert_too_large(client.put_file(name, b"x"), 4)
            assert client.get(files(name)).status == 404
        assert_too_large(client.post("/files/copy", {"paths": ["/c"], "destination": "/d"}), 4)
        assert client.put_file("/c", b"y").status == 200
        move = client.request("PATCH", files("/c"), b'{"to": "/p/q/c"}', {"Content-Type": "application/json"})
        assert_too_large(move, 4)
        assert client.delete(files("/c")).status == 200
        assert client.put_file("/e", b"x").status == 201


def test_an_upload_comes_at_least_so_fast(tmp_path: Path) -> None:
    options, environment = ("--min-rate", "300", "--workers", "1"), {"SVC_HTTP_RATE_PERIOD": "2"}
    server = Server(tmp_path / "rate.svcdb", *options, environment=environment).start()
    try:
        with RawConnection(server.url) as fast, RawConnection(server.url) as slow:
            for connection, name in ((fast, "fast"), (slow, "slow")):
                head = f"PUT /files/{name} HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n"
                connection.send(head.encode())
            for _ in range(50):
                fast.send(b"x" * 100)
                slow.send(b"x" * 10)
                time.sleep(0.1)
            answers = [connection.response() for connection in (fast, slow)]
        assert [answer and answer.status for answer in answers] == [201, 408]
        assert server.client().get(files("/slow")).status == 404
    finally:
        server.close()


@pytest.mark.parametrize("worker", ["http1", "gevent"])
def test_requests_have_so_long_to_end_after_a_stop(tmp_path: Path, worker: str) -> None:
    options = ("--graceful-timeout", "3", "--body-timeout", "30", "--worker-class", worker, "--workers", "1")
    server = Server(tmp_path / "stop.svcdb", *options).start()
    parts = urlsplit(server.url)
    try:
        ends, hangs = (http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30) for _ in "12")
        for connection, path in ((ends, "/files/ends"), (hangs, "/files/hangs")):
            connection.putrequest("PUT", path)
            connection.putheader("Content-Length", "2")
            connection.endheaders()
            connection.send(b"a")
        time.sleep(0.5)
        began = time.monotonic()
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        time.sleep(1)
        ends.send(b"b")
        assert ends.getresponse().status == 201
        stopping.join()
        assert 2 < time.monotonic() - began < 15
        ends.close()
        hangs.close()
    finally:
        server.close()


class TestHeads:
    """What a head may hold is a limit of the worker class; gunicorn's own take less of a request line."""

    @pytest.fixture
    def answer(self, shared_server: Server) -> Callable[[bytes], tuple[int, dict[str, object]]]:
        def ask(head: bytes) -> tuple[int, dict[str, object]]:
            with RawConnection(shared_server.url) as connection:
                connection.send(head)
                response = connection.response()
                assert response is not None
                return response.status, json.loads(response.body)

        return ask

    def test_a_request_line(self, answer: Callable[[bytes], tuple[int, dict[str, object]]]) -> None:
        def line(size: int) -> bytes:
            start, end = b"GET /system/health?", b" HTTP/1.1\r\n"
            return start + b"q" * (size - len(start) - len(end)) + end + b"Host: x\r\n\r\n"

        assert answer(line(16_384))[0] == 200
        assert answer(line(16_384 + 3))[0] == 414

    def test_the_number_of_fields(self, answer: Callable[[bytes], tuple[int, dict[str, object]]]) -> None:
        def head(count: int) -> bytes:
            fields = b"".join(b"X-%d: y\r\n" % number for number in range(count - 1))
            return b"GET /system/health HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n"

        assert answer(head(100))[0] == 200
        assert answer(head(101))[0] == 431

    def test_one_field(self, answer: Callable[[bytes], tuple[int, dict[str, object]]]) -> None:
        def head(size: int) -> bytes:
            return b"GET /system/health HTTP/1.1\r\nHost: x\r\nX-A: " + b"y" * (size - 5) + b"\r\n\r\n"

        assert answer(head(8_190))[0] == 200
        assert answer(head(8_190 + 3))[0] == 431
