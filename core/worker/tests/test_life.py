"""Time-outs, limits, TLS, sockets, and the end of a worker."""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
import time
from pathlib import Path

import pytest
from wire import Client

QUICK = {
    "SVC_HTTP_HEADER_TIMEOUT": "1",
    "SVC_BODY_TIMEOUT": "1",
    "SVC_HTTP_WRITE_TIMEOUT": "1",
    "SVC_HTTP_MAX_BODY": "100000",
}


@pytest.fixture(scope="module")
def quick(tmp_path_factory, content_file):
    from gunicorn_process import Gunicorn

    running = Gunicorn(
        tmp_path_factory.mktemp("quick"), "--keep-alive", "1", ECHO_FILE=str(content_file), **QUICK
    )
    yield running
    running.end()


def test_an_idle_connection_is_closed_without_a_word(quick) -> None:
    with Client(quick.address) as client:
        assert client.ask("/").status == 200
        assert client.is_at_end()


def test_a_connection_that_never_says_anything_is_closed(quick) -> None:
    with Client(quick.address) as client:
        assert client.is_at_end()


@pytest.mark.parametrize("start", [b"GET", b"GET / HTTP/1.1\r\nHost: x\r\nX-A: "])
def test_a_head_that_does_not_come_is_408(quick, start: bytes) -> None:
    with Client(quick.address) as client:
        client.send(start)
        answer = client.answer()
        assert answer is not None
        assert answer.status == 408
        assert client.is_at_end()


def test_a_head_that_drips_is_408_though_bytes_keep_coming(quick) -> None:
    with Client(quick.address) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ")
        client.socket.settimeout(0.1)
        answer = None
        for _ in range(60):
            client.send(b"a")
            try:
                answer = client.answer()
            except TimeoutError:
                continue
            break
        assert answer is not None
        assert answer.status == 408


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 10\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"]
)
def test_a_body_that_stops_is_408(quick, framing: bytes) -> None:
    with Client(quick.address) as client:
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\n" + framing)
        answer = client.answer()
        assert answer is not None
        assert answer.status == 408
        assert client.is_at_end()


def test_a_client_that_takes_no_answer_is_cut_off(quick) -> None:
    with Client(quick.address) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(2.5)
        received = 0
        try:
            while data := client.socket.recv(1 << 20):
                received += len(data)
                assert received < 1 << 28, "the server still sends"
        except ConnectionError:
            pass
        assert received
    assert "Traceback" not in quick.log


def test_a_body_over_the_limit_is_413(quick) -> None:
    with Client(quick.address) as client:
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n")
        answer = client.answer()
        assert answer is not None
        assert (answer.status, answer.json["code"]) == (413, "PAYLOAD_TOO_LARGE")
    with Client(quick.address) as client:
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n186a1\r\n")
        answer = client.answer()
        assert answer is not None
        assert (answer.status, answer.json["code"]) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize(
    "framing", [b"Content-Length: %d\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n%x\r\n"]
)
def test_a_client_that_reads_behind_its_body_gets_the_413(quick, framing: bytes) -> None:
    size = 48 << 20
    with Client(quick.address, timeout=30) as client:
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\n" + framing % size)
        for _ in range(48):
            client.send(bytes(1 << 20))
        answer = client.answer()
        assert answer is not None
        assert answer.status == 413
        assert client.is_at_end()


def test_a_body_without_end_is_cut_off(quick) -> None:
    with Client(quick.address, timeout=30) as client:
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (1 << 40))
        with pytest.raises(ConnectionError):
            for _ in range(256):
                client.socket.sendall(bytes(1 << 20))


def test_connections_beyond_the_bound_wait_for_their_turn(launch) -> None:
    server = launch("--worker-connections", "2", "--keep-alive", "60")
    with Client(server.address) as first, Client(server.address) as second:
        assert first.ask("/").status == second.ask("/").status == 200
        with Client(server.address, timeout=0.5) as third:
            third.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            with pytest.raises(TimeoutError):
                third.answer()
            first.socket.close()
            third.socket.settimeout(8)
            answer = third.answer()
            assert answer is not None
            assert answer.status == 200


def test_a_stop_lets_requests_end_and_closes_what_is_idle(launch) -> None:
    server = launch("--keep-alive", "60")
    with Client(server.address) as busy, Client(server.address) as idle, Client(server.address) as silent:
        assert idle.ask("/").status == 200
        busy.send(b"GET /slow?1.5 HTTP/1.1\r\nHost: x\r\n\r\nGET /late HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.3)
        server.send_signal(signal.SIGTERM)
        assert idle.is_at_end()
        assert silent.is_at_end()
        answer = busy.answer()
        assert answer is not None
        assert (answer.body, answer.get("connection")) == (b"slow", "close")
        assert busy.is_at_end()
    assert server.process.wait(10) == 0
    assert "Traceback" not in server.log


def test_a_stop_does_not_wait_for_ever(launch) -> None:
    server = launch("--graceful-timeout", "1")
    with Client(server.address) as client:
        client.send(b"GET /slow?60 HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.3)
        assert server.stop() == 0
        assert client.is_at_end()


def test_a_reload_brings_new_workers_and_loses_no_request(launch) -> None:
    server = launch("--keep-alive", "60")
    with Client(server.address) as busy:
        with Client(server.address) as client:
            before = client.ask("/").json["process"]
        busy.send(b"GET /slow?1 HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.2)
        server.send_signal(signal.SIGHUP)
        answer = busy.answer()
        assert answer is not None
        assert answer.body == b"slow"
    for _ in range(200):
        with Client(server.address) as client:
            if client.ask("/").json["process"] != before:
                break
        time.sleep(0.05)
    else:
        raise AssertionError(server.log)


def test_a_worker_ends_after_its_last_request(launch) -> None:
    server = launch("--max-requests", "3", "--keep-alive", "60")
    with Client(server.address) as client:
        first = client.ask("/").json["process"]
        assert client.ask("/").get("connection") is None
        assert client.ask("/").get("connection") == "close"
        assert client.is_at_end()
    with Client(server.address) as client:
        assert client.ask("/").json["process"] != first


def test_workers_end_with_their_master(launch) -> None:
    server = launch()
    with Client(server.address) as client:
        worker = client.ask("/").json["process"]
    server.process.kill()
    server.process.wait(10)
    for _ in range(100):
        if not Path(f"/proc/{worker}").exists() or Path(f"/proc/{worker}/stat").read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    os.kill(worker, signal.SIGKILL)
    raise AssertionError("the worker lives on")


def test_a_worker_that_hangs_is_replaced(launch) -> None:
    server = launch("--timeout", "2", "--workers", "1")
    with Client(server.address) as client:
        worker = client.ask("/").json["process"]
    os.kill(worker, signal.SIGSTOP)
    server.wait_for("WORKER TIMEOUT")
    os.kill(worker, signal.SIGCONT)
    with Client(server.address, timeout=15) as client:
        assert client.ask("/").json["process"] != worker


def test_a_unix_socket(launch, tmp_path) -> None:
    server = launch(bind=f"unix:{tmp_path}/s")
    with Client(server.address) as client:
        answer = client.ask("/", "GET", "X-Forwarded-Proto: https").json
        assert (answer["remote"], answer["scheme"]) == ("", "https")


def test_several_workers_and_reuse_port(launch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = launch("--workers", "2", "--reuse-port", bind=f"127.0.0.1:{port}")
    # With this setting each worker has a socket of its own, which it binds itself.
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(server.address) == 0:
                break
        time.sleep(0.05)
    seen = set()
    for _ in range(200):
        with Client(server.address) as client:
            seen.add(client.ask("/").json["process"])
        if len(seen) == 2:
            break
    assert len(seen) == 2


def test_tls(launch, certificate, content_file) -> None:
    server = launch("--certfile", certificate[0], "--keyfile", certificate[1], **QUICK)
    context = ssl.create_default_context(cafile=certificate[0])
    context.check_hostname = False
    context.set_alpn_protocols(["h2", "http/1.1"])
    with Client(server.address) as mute, Client(server.address, context=context) as client:
        assert client.socket.selected_alpn_protocol() == "http/1.1"
        assert client.ask("/").json["scheme"] == "https"
        assert client.ask("/stream").body.endswith(b"x" * 100_000)
        assert client.ask("/file").body == content_file.read_bytes()
        assert client.ask("/reads?65536", "PUT", body=bytes(90_000)).json["size"] == 90_000
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
        for _ in range(3):
            answer = client.answer()
            assert answer is not None
            assert answer.status == 200
        # Somebody who never begins the handshake, or speaks something else, harms nobody.
        while mute._more():
            pass
        with Client(server.address) as plain:
            plain.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            plain.socket.settimeout(8)
            while plain._more():
                pass
        assert client.is_at_end()
    assert "Traceback" not in server.log


def test_the_access_log_is_written_when_it_is_asked_for(launch, tmp_path) -> None:
    log = tmp_path / "access"
    server = launch("--access-logfile", str(log), "--access-logformat", "%(m)s %(U)s %(s)s %(B)s %({x-a}i)s")
    with Client(server.address) as client:
        client.ask("/unread", "GET", "X-A: b")
        client.ask("/fail-before")
        assert client.is_at_end()
    assert log.read_text().splitlines()[:2] == ["GET /unread 200 6 b", "GET /fail-before 500 0 -"]


def test_hooks_are_called_where_somebody_set_them(launch, tmp_path) -> None:
    (tmp_path / "settings.py").write_text(
        "def pre_request(worker, req):\n    worker.log.info('before %s %s', req.method, req.path)\n"
        "def post_request(worker, req, environ, resp):\n    worker.log.info('after %s', resp.status)\n"
    )
    server = launch("-c", str(tmp_path / "settings.py"))
    with Client(server.address) as client:
        client.ask("/unread")
        client.ask("/")
    assert re.search(r"before GET /unread\n(.|\n)*after 200 OK", server.log)


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        (["X-Forwarded-Proto: https"], "https"),
        (["X-Forwarded-Proto: http"], "http"),
        ([], "http"),
        (["X-Forwarded-Proto: https", "X-Forwarded-Ssl: off"], 400),
    ],
)
def test_a_trusted_peer_may_say_that_its_client_came_by_tls(server, fields, outcome) -> None:
    with Client(server.address) as client:
        answer = client.ask("/", "GET", *fields)
        assert (answer.json["scheme"] if answer.status == 200 else answer.status) == outcome


def test_others_may_not(launch) -> None:
    server = launch("--forwarded-allow-ips", "10.0.0.0/8")
    with Client(server.address) as client:
        assert client.ask("/", "GET", "X-Forwarded-Proto: https").json["scheme"] == "http"


@pytest.mark.parametrize(
    ("words", "env", "message"),
    [
        ([], {"SVC_HTTP_DRAIN_BYTES": "many"}, "SVC_HTTP_DRAIN_BYTES: 'many' is not a whole number"),
        (["--proxy-protocol", "v1"], {}, "has no proxy_protocol"),
    ],
)
def test_settings_that_can_not_be_had_end_the_start(launch, words, env, message) -> None:
    server = launch(*words, **env)
    assert server.process.wait(20) != 0
    assert message in server.log
