"""The client against a server that misbehaves in all the usual ways."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator
from typing import ClassVar

import pytest

from svc import errors
from svc_client import Client, Credentials, ServerAddress
from svc_client.files import file_url
from svc_client.transport import Transport


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: ClassVar[list[tuple[str, str, str | None]]] = []
    more = threading.Event()
    busy = 0
    tokens = 0
    wanted = 1
    lifetime = 3600

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.seen.append((self.command, self.path, self.headers.get("Authorization")))
        if self.path == "/private" and self.headers.get("Authorization") != f"Bearer token-{self.wanted}":
            self._answer(401, b'{"error": "Log in.", "code": "AUTH_REQUIRED"}')
        elif self.path == "/drop-next":
            self._answer(200, b"{}")
            self.close_connection = True
        elif self.path == "/busy" and type(self).busy:
            type(self).busy -= 1
            self._answer(503, b'{"error": "Later.", "code": "SERVICE_UNAVAILABLE", "retry_after": 0}')
        elif self.path == "/missing":
            self._answer(404, b'{"error": "Nothing is at this path.", "code": "NOT_FOUND", "path": "/x"}')
        elif self.path == "/failed":
            self._answer(500, b'{"error": "Failed.", "code": "INTERNAL_ERROR"}', X_Request_Id="abc")
        elif self.path == "/elsewhere":
            self._answer(302, b"", Location=f"http://localhost:{self.server.server_address[1]}/x")  # type: ignore[attr-defined]
        elif self.path == "/moved":
            self._answer(302, b"", Location="/x")
        elif self.path in ("/nowhere", "/no-port"):
            self._answer(
                302, b"", Location={"/nowhere": "http://[::1", "/no-port": "http://h:999999/"}[self.path]
            )
        elif self.path == "/no-length":
            about = {"X-Svc-Entry-Type": "file", "X-Svc-Path": "/x", "X-Svc-Content-Hash": "0" * 64}
            numbers = dict.fromkeys(("X-Svc-Size", "X-Svc-Created-At", "X-Svc-Updated-At"), "1")
            self.send_response(200)
            for name, value in {**about, **numbers, "Content-Length": "many"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.close_connection = True
        elif self.path == "/circle":
            self._answer(302, b"", Location="/circle")
        elif self.path == "/deep":
            self._answer(400, b"[" * 200_000)
        elif self.path == "/echo":
            bearer = (self.headers.get("Authorization") or "").encode()
            self._answer(400, b'{"error": "What is %s?", "code": "INVALID_INPUT"}' % bearer)
        elif self.path in ("/endless", "/negative"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.close_connection = True
            try:
                while self.path == "/endless":
                    self.wfile.write(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
                self.wfile.write(b"-5\r\nxxxxx\r\n")
            except OSError:
                pass
        elif self.path == "/in-pieces":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\r\nfirst\r\n")
            self.more.wait(30)
            self.wfile.write(b"6\r\nsecond\r\n0\r\n\r\n")
        elif self.path == "/html":
            self._answer(500, b"<html>oops</html>")
        elif self.path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"too little")
            self.close_connection = True
        else:
            self._answer(200, b'{"ok": true}')

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((self.command, self.path, self.headers.get("Authorization")))
        if self.path == "/auth/token" and b"good-key" in content:
            type(self).tokens += 1
            token = f"token-{type(self).tokens}"
            self._answer(200, b'{"token": "%s", "expires_in": %d}' % (token.encode(), self.lifetime))
        elif self.path == "/auth/token":
            self._answer(401, b'{"error": "This key is not valid.", "code": "AUTH_REQUIRED"}')
        elif self.path == "/busy":
            type(self).busy -= 1
            self._answer(503, b'{"error": "Later.", "code": "SERVICE_UNAVAILABLE", "retry_after": 0}')
        elif self.path == "/lost":
            self.close_connection = True
        else:
            self._answer(200, b'{"ok": true}')

    def do_PUT(self) -> None:
        self.seen.append((self.command, self.path, None))
        self._answer(412, b'{"error": "Changed.", "code": "PRECONDITION_FAILED"}', Connection="close")
        self.close_connection = True


@pytest.fixture
def server() -> Iterator[str]:
    _Handler.seen = []
    _Handler.busy = _Handler.tokens = 0
    _Handler.lifetime = 3600
    _Handler.wanted = 1
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{listener.server_address[1]}"
        listener.shutdown()
        thread.join()


@pytest.fixture
def connections(server: str) -> Iterator[Transport]:
    opened = Transport(ServerAddress.parse(server + "/"), Credentials("secret-token"))
    yield opened
    opened.close()


def _get(connections: Transport, url: str) -> object:
    return connections.json("GET", url, object)


def test_the_token_travels_in_the_header_and_never_in_a_representation(connections: Transport) -> None:
    _get(connections, "/x")
    assert _Handler.seen == [("GET", "/x", "Bearer secret-token")]
    assert "secret" not in repr(connections.address)
    assert "secret" not in repr(Credentials("secret-token", "secret-key"))


def test_a_connection_that_was_closed_meanwhile_is_made_anew(connections: Transport) -> None:
    _get(connections, "/drop-next")
    assert _get(connections, "/x") == {"ok": True}


def test_a_busy_server_is_asked_again(connections: Transport) -> None:
    _Handler.busy = 2
    assert _get(connections, "/busy") == {"ok": True}


def test_errors_come_back_as_the_classes_that_the_server_raised(connections: Transport) -> None:
    with pytest.raises(errors.NotFound) as raised:
        connections.request("GET", "/missing")
    assert raised.value.details == {"path": "/x"}
    assert _get(connections, "/x") == {"ok": True}


def test_a_failure_without_a_body_of_svc_is_told_by_its_status(connections: Transport) -> None:
    with pytest.raises(errors.InternalError, match="500"):
        connections.request("GET", "/html")


@pytest.mark.parametrize("url", ["/deep", "/negative", "/endless"])
def test_garbage_and_endless_answers_are_an_error_in_words(
    connections: Transport, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_client.transport._JSON_LIMIT", 3 << 20)
    with pytest.raises(errors.ServiceUnavailable):
        connections.json("GET", url, dict)


def test_a_token_that_a_server_repeats_is_masked(connections: Transport) -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        connections.json("GET", "/echo", dict)
    assert "What is Bearer ***?" in str(refused.value)


def test_a_body_that_ends_early_is_an_error(connections: Transport) -> None:
    with pytest.raises(errors.ServiceUnavailable, match="ended before"):
        _get(connections, "/short")


def test_a_body_that_goes_on_is_read_as_it_arrives(connections: Transport) -> None:
    arriving = connections.request("GET", "/in-pieces").arriving()
    assert next(arriving) == b"first"
    _Handler.more.set()
    assert list(arriving) == [b"second"]
    with pytest.raises(errors.ServiceUnavailable):
        list(connections.request("GET", "/short").arriving())


def test_an_answer_to_a_body_that_is_still_being_sent_is_heard(connections: Transport) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield b"x" * 1024 * 1024

    with pytest.raises(errors.PreconditionFailed, match=r"Changed\."):
        connections.request("PUT", "/x", headers={"Content-Length": str(64 * 1024 * 1024)}, body=endless)


def test_nobody_there_is_told_with_the_url() -> None:
    nobody = Transport(ServerAddress.parse("http://127.0.0.1:1"), Credentials())
    with pytest.raises(errors.ServiceUnavailable, match=r"http://127\.0\.0\.1:1 cannot be reached"):
        nobody.request("GET", "/")
    nobody.close()


@pytest.mark.parametrize(
    "url",
    [
        *("http://", "ftp://x", "http://u:p@h", "http://h:99999", "http://h/?q", "http://[::1"),
        *("http://a b/", "http://\u202eevil:1", "http://a%zz/", "http://" + "a" * 64),
    ],
)
def test_what_is_no_server_is_refused(url: str) -> None:
    with pytest.raises(errors.UsageError):
        ServerAddress.parse(url)


def test_tokens_cannot_smuggle_headers() -> None:
    with pytest.raises(errors.UsageError):
        Client("http://h", token="a\r\nX: y")


def test_every_segment_is_encoded_once() -> None:
    assert file_url("/files/", ("a b", "50%", "é?#")) == "/files/a%20b/50%25/%C3%A9%3F%23"


def test_the_request_id_of_a_failure_is_in_its_details(connections: Transport) -> None:
    with pytest.raises(errors.InternalError) as raised:
        _get(connections, "/failed")
    assert raised.value.details == {"request_id": "abc"}


def test_a_redirect_is_followed_within_the_server_only(connections: Transport) -> None:
    assert _get(connections, "/moved") == {"ok": True}
    _Handler.seen.clear()
    with pytest.raises(errors.ServiceUnavailable, match=r"http://localhost:\d+/x"):
        _get(connections, "/elsewhere")
    assert [path for _, path, _ in _Handler.seen] == ["/elsewhere"]


def test_a_circle_of_redirects_ends(connections: Transport) -> None:
    with pytest.raises(errors.ServiceUnavailable, match="circle"):
        _get(connections, "/circle")
    assert len(_Handler.seen) == 5


@pytest.mark.parametrize("url", ["/nowhere", "/no-port"])
def test_a_redirect_to_what_is_no_url_is_an_error_in_words(connections: Transport, url: str) -> None:
    with pytest.raises(errors.ServiceUnavailable, match="does not answer as an svc server does"):
        _get(connections, url)


def test_a_length_that_is_no_number_is_an_error_in_words(connections: Transport) -> None:
    response = connections.request("GET", "/no-length")
    with response, pytest.raises(errors.ServiceUnavailable, match="does not answer as an svc server does"):
        response.number("Content-Length")


class TestRepeating:
    def test_what_may_not_be_repeated_is_sent_once(self, connections: Transport) -> None:
        for url in ("/busy", "/lost"):
            _Handler.seen.clear()
            with pytest.raises(errors.ServiceUnavailable):
                connections.json("POST", url, object, value={})
            assert len(_Handler.seen) == 1

    def test_a_condition_makes_a_refused_request_repeatable(self, server: str) -> None:
        transport = Transport(ServerAddress.parse(server), Credentials(), attempts=3)
        with pytest.raises(errors.ServiceUnavailable, match="Later"):
            transport.json("POST", "/busy", object, value={}, headers={"If-Match": "*"})
        transport.close()
        assert len(_Handler.seen) == 3

    def test_a_lost_answer_is_asked_for_again_so_many_times(self, server: str) -> None:
        transport = Transport(ServerAddress.parse(server), Credentials(), attempts=2)
        with pytest.raises(errors.ServiceUnavailable, match="ended before"):
            transport.json("POST", "/lost", object, value={}, repeatable=True)
        transport.close()
        assert len(_Handler.seen) == 2

    def test_a_body_that_can_be_read_once_is_sent_once(self, connections: Transport) -> None:
        with pytest.raises(errors.ServiceUnavailable):
            connections.request(
                "POST", "/busy", body=iter([b"x"]), headers={"Content-Length": "1"}, repeatable=True
            )
        assert len(_Handler.seen) == 1

    def test_a_server_that_does_not_answer_is_waited_for_so_long(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            transport = Transport(ServerAddress.parse(url), Credentials(), timeout=0.05, attempts=2)
            with pytest.raises(errors.ServiceUnavailable, match=r"did not answer within 0\.05 seconds"):
                transport.request("GET", "/")
            transport.close()


class TestApiKeys:
    def test_a_key_is_exchanged_once_and_the_token_used_from_then_on(self, server: str) -> None:
        with Client(server, api_key="good-key") as client:
            for _ in range(2):
                assert client.transport.json("GET", "/private", object) == {"ok": True}
        assert _Handler.seen == [
            ("POST", "/auth/token", None),
            ("GET", "/private", "Bearer token-1"),
            ("GET", "/private", "Bearer token-1"),
        ]

    def test_a_token_that_was_revoked_is_replaced_once(self, server: str) -> None:
        with Client(server, api_key="good-key") as client:
            client.transport.json("GET", "/private", object)
            _Handler.wanted = 2
            assert client.transport.json("GET", "/private", object) == {"ok": True}
            _Handler.wanted = 9
            with pytest.raises(errors.AuthRequired, match="Log in"):
                client.transport.json("GET", "/private", object)
        assert _Handler.tokens == 3

    def test_a_token_that_ends_soon_is_replaced_before(self, server: str) -> None:
        _Handler.lifetime = 5
        with Client(server, api_key="good-key") as client:
            for _ in range(2):
                client.transport.json("GET", "/x", object)
        assert _Handler.tokens == 2

    def test_who_is_not_signed_in_is_told_how(self, server: str) -> None:
        with Client(server) as client, pytest.raises(errors.AuthRequired) as raised:
            client.transport.json("GET", "/private", object)
        assert raised.value.message == f"Log in. 'svc login {server}' signs in."
        with Client(server) as client, pytest.raises(errors.AuthRequired) as refused:
            client.sign_in("bad-key")
        assert refused.value.message == "This key is not valid."

    def test_a_key_that_is_refused_is_an_error_without_the_key(self, server: str) -> None:
        with Client(server, api_key="bad-key") as client, pytest.raises(errors.AuthRequired) as raised:
            client.transport.json("GET", "/x", object)
        assert "bad-key" not in f"{raised.value} {raised.value.details}"

    def test_credentials_come_from_the_environment_unless_they_are_given(
        self, server: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SVC_TOKEN", "of-the-environment")
        for token in (None, "given"):
            with Client(server, token=token) as client:
                client.transport.json("GET", "/x", object)
        assert [given for _, _, given in _Handler.seen] == ["Bearer of-the-environment", "Bearer given"]


class TestProxies:
    def test_a_proxy_is_asked_for_servers_elsewhere_and_gets_its_own_credentials(
        self, server: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("http_proxy", server.replace("http://", "http://user:pass%40word@"))
        monkeypatch.delenv("no_proxy", raising=False)
        with Client("http://elsewhere.invalid:81", token="t") as client:
            assert client.transport.json("GET", "/x", object) == {"ok": True}
        assert _Handler.seen == [("GET", "http://elsewhere.invalid:81/x", "Bearer t")]

    @pytest.mark.parametrize(
        "proxy", ["nonsense://h", "http://u:secret@127.0.0.1:99999", "http://", "socks5://h:1", "http://a b"]
    )
    def test_what_is_no_proxy_is_refused_without_repeating_it(
        self, proxy: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.delenv("no_proxy", raising=False)
        with pytest.raises(errors.UsageError, match="http_proxy") as refused:
            Client("http://elsewhere.invalid:81")
        assert "secret" not in str(refused.value)

    def test_a_server_of_this_machine_is_reached_without_a_proxy(
        self, server: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        with Client(server) as client:
            assert client.transport.json("GET", "/x", object) == {"ok": True}
