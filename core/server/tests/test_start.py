"""``svc start``: a start says when it serves or why it can't, and a stop lets requests end."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import SVC  # noqa: TID252

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., Any]


def raw(server: Any, request: bytes, *, finish: bool = False) -> bytes:
    with socket.create_connection((server.host, server.port), timeout=20) as connection:
        connection.sendall(request)
        if finish:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer


def test_the_ready_line_names_url_database_and_version(start: Start, tmp_path: Path) -> None:
    server = start("-D", "x.svcdb")
    assert f"svc ready at http://127.0.0.1:{server.port} serving x.svcdb at version" in server.ready
    status, body = server.get("/system/health")
    assert (status, json.loads(body)["status"]) == (200, "healthy")
    assert (tmp_path / "x.svcdb").exists()
    assert server.stop() == 0


def test_the_default_database_is_made_in_the_current_directory(start: Start, tmp_path: Path) -> None:
    assert start().stop() == 0
    assert (tmp_path / "data.svcdb").exists()


def test_no_configuration_of_gunicorn_is_picked_up(start: Start, tmp_path: Path) -> None:
    (tmp_path / "gunicorn.conf.py").write_text("raise SystemExit('loaded')")
    server = start()
    assert server.stop() == 0
    assert "loaded" not in server.log.read_text()


def test_no_variable_of_gunicorn_is_read(environment: dict[str, str], tmp_path: Path) -> None:
    # A program of its own: gunicorn reads them when it is imported.
    outcome = subprocess.run(
        [*SVC, "start", "--port", "0", "-D", "no/x.svcdb"],
        env={**environment, "WEB_CONCURRENCY": "xx", "FORWARDED_ALLOW_IPS": "*"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (outcome.returncode, "cannot be made" in outcome.stderr) == (3, True), outcome


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_lets_the_request_at_work_end(start: Start, number: signal.Signals) -> None:
    server = start()
    answers: list[tuple[int, bytes]] = []
    asking = threading.Thread(target=lambda: answers.append(server.get("/echo?seconds=1.5")))
    asking.start()
    time.sleep(0.5)
    assert server.stop(number) == 0
    asking.join()
    assert answers == [(200, b'{"done":true}\n')]


def test_a_stop_ends_endless_streams_in_order(start: Start) -> None:
    server = start()
    answers: list[tuple[int, bytes]] = []
    asking = threading.Thread(target=lambda: answers.append(server.get("/endless")))
    asking.start()
    time.sleep(0.5)
    assert server.stop() == 0
    asking.join()
    assert answers[0][0] == 200
    assert answers[0][1].endswith(b"last")


def test_a_client_that_hangs_in_its_body_does_not_keep_the_server(start: Start) -> None:
    server = start("--body-timeout", "1")
    with socket.create_connection((server.host, server.port), timeout=20) as connection:
        connection.sendall(b"PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
        answer = connection.recv(65536)
        assert b" 408 " in answer.split(b"\r\n")[0]
        assert b"Connection: close" in answer
        assert server.stop() == 0


def test_a_reload_takes_new_workers_and_keeps_serving(start: Start) -> None:
    server = start()
    server.process.send_signal(signal.SIGHUP)
    for _ in range(20):
        assert server.get("/system/health")[0] == 200
        time.sleep(0.1)
    assert server.stop() == 0


def holders(database: Path) -> list[int]:
    """The processes that have a database, or something beside it, open."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            files = [os.readlink(entry) for entry in (process / "fd").iterdir()]
        except OSError:
            continue
        if any(file.startswith(str(database)) for file in files):
            found.append(int(process.name))
    return found


def test_a_server_that_was_stopped_leaves_nobody_with_the_database(
    start: Start, tmp_path: Path, eventually: Callable[..., Any]
) -> None:
    server = start("-D", "x.svcdb", "--workers", "2")
    # Two workers and the background process; never the master.
    eventually(lambda: len(holders(tmp_path / "x.svcdb")) == 3)
    assert server.process.pid not in holders(tmp_path / "x.svcdb")
    assert server.stop() == 0
    assert holders(tmp_path / "x.svcdb") == []


def test_workers_and_background_process_end_with_a_master_that_is_killed(
    start: Start, tmp_path: Path, eventually: Callable[..., Any]
) -> None:
    server = start("-D", "x.svcdb", "--workers", "2")
    eventually(lambda: len(holders(tmp_path / "x.svcdb")) == 3)
    server.process.kill()
    eventually(lambda: holders(tmp_path / "x.svcdb") == [])


KEPT_IN_MASTER = """
import sys
import svc_server.commands.start_command, svc_server.preflight, svc_server.start, svc_worker
import threading
from pathlib import Path
from gevent import monkey

print("threads", threading.active_count(), len(list(Path("/proc/self/task").iterdir())))
print("plugins", [name for name in sys.modules if name.startswith(("svc_files", "svc_versions"))])
monkey.patch_all()
replaced = {
    (name, id(original)): f"{module}.{name}"
    for module, names in monkey.saved.items()
    for name, original in names.items()
}
ours = ("svc", "falcon", "msgspec", "pluggy", "lmdb", "cbor2", "zstandard", "gunicorn", "httptools")
for name, module in sorted(sys.modules.items()):
    if name.partition(".")[0].partition("_")[0] in ours:
        for attribute, value in vars(module).items():
            if (attribute.lstrip("_"), id(value)) in replaced:
                print("keeps", name, replaced[attribute.lstrip("_"), id(value)])
"""


def test_what_the_master_imports_is_fit_for_workers_under_gevent() -> None:
    done = subprocess.run([sys.executable, "-c", KEPT_IN_MASTER], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "threads 1 1",
        "plugins []",
        # Held while a table of routes is compiled, which lets no other greenlet run.
        "keeps falcon.routing.compiled threading.Lock",
        # On purpose: it waits for nothing.
        "keeps svc_worker.streams select.poll",
    ]


def test_a_port_in_use_is_said_at_once(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        outcome = run("start", "--port", str(taken.getsockname()[1]))
    assert outcome.returncode == 2
    assert "in use" in outcome.stderr
    assert outcome.stdout == ""


CLUSTERED = "test.server,auth.testing,test.cluster"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--auth", "self-contained"], 11, "--auth self-contained needs a plugin"),
        (["--auth", "file://x"], 11, "Modes at hand: --auth testing."),
        (["--auth", "disabled"], 11, "Installed, but not allowed here: auth.disabled"),
        (["--auth", "nonsense"], 11, "nonsense"),
        (["--join", "http://x"], 2, "--join"),
        (["--plugins", CLUSTERED, "--expiry", "soon"], 2, "--expiry: 'soon': expected `int`"),
        (["--plugins", CLUSTERED, "--cluster-tls=maybe"], 2, "--cluster-tls: 'maybe'"),
        (["--plugins", f"{CLUSTERED},test.none", "--auth", "none"], 11, "allowed but not installed"),
        (["--port", "x"], 2, "--port: 'x'"),
        (["--port", "70000"], 2, "from 0 to 65535"),
        (["--workers", "0"], 2, "--workers"),
        (["--log-format", "xml"], 2, "pretty, json"),
        (["--tls-cert", "x.pem"], 2, "--tls-key is missing"),
        (["--tls-cert", "no.pem", "--tls-key", "no.pem"], 2, "no.pem can't be read"),
        (["--host", "203.0.113.9"], 2, "203.0.113.9"),
        (["--config", "no.toml"], 2, "no.toml can't be read"),
        (["--plugin-option", "test.server.x=1"], 10, "test.server"),
        (["--plugin-option", "junk"], 2, "--plugin-option: one of them is not 'id.key=value'"),
        (["--plugin-option", "junk.key=1"], 2, "--plugin-option: 'junk.key' is not 'id.key=value'"),
        (["--no-such-option"], 2, "--no-such-option"),
        (["-D", "no/such/directory/x.svcdb"], 3, "directory"),
    ],
)
def test_what_keeps_it_from_starting_is_said_with_its_exit_code(
    run: Run, words: list[str], code: int, text: str
) -> None:
    outcome = run("start", "--port", "0", *words) if "--port" not in words else run("start", *words)
    assert text in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert outcome.returncode == code or (text == "directory" and outcome.returncode in (1, 3))


def test_a_foreign_file_is_refused_and_kept(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.svcdb").write_bytes(b"something else" * 100)
    outcome = run("start", "--port", "0", "-D", "x.svcdb")
    assert outcome.returncode == 6
    assert (tmp_path / "x.svcdb").read_bytes() == b"something else" * 100


def test_a_database_without_the_auth_plugin_stops_the_server_once(run: Run, tmp_path: Path) -> None:
    assert run("info", "-D", "x.svcdb").returncode == 3
    from svc.database import Database

    Database(tmp_path / "x.svcdb").close()
    with Database(tmp_path / "x.svcdb") as database, database.transaction() as transaction:
        transaction.put_system(("plugin-set",), b'{"plugins":[]}')
    outcome = run("start", "--port", "0", "-D", "x.svcdb")
    assert outcome.returncode == 11
    assert outcome.stderr.count("svc: ") == 1
    assert "not enabled in this database" in outcome.stderr


def test_environment_and_file_give_options_too(start: Start, run: Run, tmp_path: Path) -> None:
    config = tmp_path / "svc.toml"
    config.write_text('database = "from-file.svcdb"\nworkers = 1\nlog-format = "json"\naccess-log = true\n')
    server = start("--config", "svc.toml")
    assert "serving from-file.svcdb" in server.ready
    server.get("/system/health")
    assert server.stop() == 0
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    request = next(line for line in lines if line["event"] == "request")
    assert {"method", "path", "status", "ms", "bytes", "request_id", "user"} <= set(request)
    config.write_text("no-such-key = 1\n")
    outcome = run("start", SVC_CONFIG="svc.toml")
    assert (outcome.returncode, "no_such_key" in outcome.stderr) == (2, True)
    outcome = run("start", SVC_PORT="x")
    assert (outcome.returncode, "SVC_PORT" in outcome.stderr) == (2, True)


@pytest.fixture
def certificate(tmp_path: Path) -> None:
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost"
    )
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    os.chmod(tmp_path / "key.pem", 0o600)


@pytest.mark.usefixtures("certificate")
def test_tls_is_served_with_certificate_and_key(start: Start, run: Run, tmp_path: Path) -> None:
    server = start("--tls-cert", "cert.pem", "--tls-key", "key.pem")
    assert server.ready.startswith("svc ready at https://127.0.0.1:")
    context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    with (
        socket.create_connection((server.host, server.port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        secure.sendall(b"GET /system/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: secure.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200")
        # The certificate is good for two days.
        assert b'"code":"server.certificate"' in answer
    assert server.stop() == 0
    assert "may read the key" not in server.log.read_text()
    swapped = run("start", "--tls-cert", "key.pem", "--tls-key", "cert.pem")
    assert (swapped.returncode, "in PEM" in swapped.stderr) == (2, True)


@pytest.mark.usefixtures("certificate")
def test_a_key_that_everybody_may_read_is_told(start: Start, tmp_path: Path) -> None:
    os.chmod(tmp_path / "key.pem", 0o644)
    server = start("--tls-cert", "cert.pem", "--tls-key", "key.pem")
    assert "Everybody on this machine may read the key key.pem: chmod o-r key.pem." in server.log.read_text()
    assert server.stop() == 0


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"GET /x BAD\r\n\r\n", 400),
        (b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /system/health HTTP/1.1\r\nHost: x\r\nBad Name: x\r\n\r\n", 400),
        (b"GET /system/health HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 20000 + b"\r\n\r\n", 431),
        (b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET /system/health HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431),
        (b"PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", 400),
        (b"PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", 400),
        (b"PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc", 400),
        (b"PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: rot13\r\n\r\n", 501),
        (b"PUT /echo HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\nContent-Length: 1\r\n\r\n", 417),
        (b"PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n", 413),
        (b"FOO /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 405),
        (b"GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400),
        (b"GET /%ff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400),
    ],
)
def test_what_breaks_the_rules_is_answered_in_the_one_form(
    shared: Any, request_bytes: bytes, status: int
) -> None:
    answer = raw(shared, request_bytes, finish=True)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b" ")[1] == b"%d" % status, answer
    document = json.loads(body)
    assert set(document) >= {"error", "code"}
    assert b"x-request-id" in head.lower()
    assert shared.get("/system/health")[0] == 200


def test_a_body_is_asked_for_only_when_it_is_wanted(shared: Any) -> None:
    head = b"PUT /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    with socket.create_connection((shared.host, shared.port), timeout=20) as connection:
        connection.sendall(head % 3)
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"abc")
        answer = b""
        while not answer.endswith(b"}\n"):
            answer += connection.recv(65536)
        assert b'{"received":3}' in answer
    answer = raw(shared, head % 2_000_000)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"Connection: close" in answer


def test_the_connection_goes_on_after_a_small_body_that_nobody_read(shared: Any) -> None:
    smuggled = b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n"
    first = b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(smuggled)
    last = b"GET /system/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = raw(shared, first + smuggled + last)
    assert answer.count(b"HTTP/1.1 ") == 2
    assert b"healthy" in answer


@pytest.mark.parametrize("worker", ["gevent", "gthread", "sync"])
def test_it_runs_in_a_gunicorn_of_ones_own(start: Start, worker: str) -> None:
    server = start(gunicorn=["-k", worker, "-w", "2", "--threads", "4", 'svc_server:create_app("x.svcdb")'])
    deadline = time.monotonic() + 20
    while server.get("/system/health")[0] != 200 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert server.get("/echo") == (200, b'{"done":true}\n')
    request = b"PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"
    assert raw(server, request).endswith(b'{"received":3}\n')
    assert server.stop() == 0


def test_a_gunicorn_of_ones_own_is_told_what_is_missing(start: Start) -> None:
    server = start(gunicorn=["-w", "1", 'svc_server:create_app("x.svcdb", auth="self-contained")'])
    assert server.process.wait(30) == 3
    assert "--auth self-contained needs a plugin" in server.log.read_text()


def test_help_lists_options_of_plugins_that_may_be_used(run: Run) -> None:
    without = run("start", "--help")
    assert (without.returncode, "--join" in without.stdout) == (0, False)
    allowed = run("start", "--help", "--plugins", CLUSTERED)
    assert allowed.returncode == 0, allowed.stderr
    shown = " ".join(allowed.stdout.split())
    assert "--join URL Joins the cluster of this node. [plugin test.cluster; env: SVC_JOIN]" in shown
    assert "--join-token KEY" in run("background", "--help", SVC_PLUGINS=CLUSTERED).stdout


def test_options_of_a_plugin_come_before_what_the_database_says(start: Start) -> None:
    server = start("--plugins", CLUSTERED, "--join", "http://one", "--join-token", "k", "--peers", "a,b")
    assert server.get("/cluster") == (200, b'["http://one","k",["a","b"],true]\n')
    assert server.stop() == 0
