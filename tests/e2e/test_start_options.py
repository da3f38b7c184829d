"""svc start: its options, their environment variables and file, and options whose plugin is missing.

What is refused runs in forks of a process that has imported svc; ``test_restart`` has some of the
program.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_blackbox.client import Client
from svc_blackbox.prepared import run_svc
from svc_blackbox.server import Server, free_port


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "options.svcdb")
    yield server
    server.close()


def test_the_ready_line_names_url_database_and_version(server: Server) -> None:
    server.start()
    version = server.client().head("/files/")["X-Svc-Version"]
    assert server.url in server.ready_line
    assert server.database.name in server.ready_line
    assert version in server.ready_line
    assert "127.0.0.1" in server.url or "localhost" in server.url


def test_environment_variables_stand_for_options(server: Server) -> None:
    port = free_port()
    server.environment = {"SVC_PORT": str(port), "SVC_AUTH": "disabled", "SVC_DATABASE": str(server.database)}
    server.start_with()
    assert server.url.endswith(f":{port}")
    assert server.database.exists()


def test_a_file_stands_for_options_and_the_command_line_wins(server: Server, tmp_path: Path) -> None:
    port = free_port()
    configuration = tmp_path / "svc.toml"
    configuration.write_text(
        f'port = {free_port()}\nauth = "disabled"\ndatabase = "{server.database}"\nworkers = 1\n'
    )
    server.start_with("--config", str(configuration), "--port", str(port))
    assert server.url.endswith(f":{port}")
    assert server.database.exists()


@pytest.mark.parametrize(
    "content", ["port = ", "no_such_option = 1", 'port = "many"', "\x00", "port = 99999999"]
)
def test_a_bad_file_is_refused_with_a_reason(tmp_path: Path, content: str) -> None:
    configuration = tmp_path / "svc.toml"
    configuration.write_text(content)
    words = ("-D", tmp_path / "x.svcdb", "--auth", "disabled", "--config", configuration)
    result = run_svc("start", *words, check=False)
    assert result.returncode == 2
    assert result.stderr.strip()
    assert b"Traceback" not in result.stderr


def test_no_process_leaves_a_core_dump_with_the_secrets_in_it(server: Server) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard == 0:
        pytest.skip("nothing may leave a core dump here")
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        server.start()
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    found = []
    for limits in Path("/proc").glob("[0-9]*/limits"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(limits.parent.name)) == server.pid:
                line = next(line for line in limits.read_text().splitlines() if line.startswith("Max core"))
                found.append(line.split()[4])
    assert len(found) >= 3, "master, worker and background process"
    assert set(found) == {"0"}


def test_auth_false_means_disabled(server: Server) -> None:
    server.start_with("-D", str(server.database), "--auth", "false", "--port", str(free_port()))
    assert server.client().get("/files/").status == 200


def test_disabled_authentication_listens_on_loopback_only(server: Server) -> None:
    server.start()
    addresses = {
        information[4][0]
        for information in socket.getaddrinfo(socket.gethostname(), None, family=socket.AF_INET)
    } - {"127.0.0.1", "127.0.1.1"}
    port = int(server.url.rsplit(":", 1)[1])
    for address in addresses:
        with pytest.raises(OSError), socket.create_connection((address, port), timeout=5):
            pass


@pytest.mark.parametrize(
    "options",
    [
        ["--auth", "self-contained"],
        ["--auth", "self"],
        ["--auth", "file:///nowhere/identity"],
    ],
)
def test_an_auth_mode_whose_plugin_is_missing_says_so(tmp_path: Path, options: list[str]) -> None:
    result = run_svc(
        *("start", "-D", tmp_path / "x.svcdb", "--port", free_port(), "--plugins", "files,auth.disabled"),
        *options,
        check=False,
    )
    assert result.returncode == 11, result.stderr
    assert b"plugin" in result.stderr.lower()


@pytest.mark.parametrize(
    "options",
    [
        ["--port", "many"],
        ["--port", "70000"],
        ["--port", "-1"],
        ["--workers", "0"],
        ["--no-such-option"],
        ["--join", "127.0.0.1:1"],
        ["--peers", "http://127.0.0.1:1,nowhere"],
        ["--auth", "no-such-mode"],
        ["--tls-cert", "/nowhere.pem"],
        ["--tls-cert", "/nowhere", "--tls-key", "/nowhere"],
        ["--plugins", "no-such-plugin"],
    ],
)
def test_bad_options_are_refused_with_a_reason(tmp_path: Path, options: list[str]) -> None:
    auth = [] if "--auth" in options else ["--auth", "disabled"]
    port = [] if "--port" in options else ["--port", str(free_port())]
    result = run_svc("start", "-D", tmp_path / "x.svcdb", *auth, *port, *options, check=False)
    assert result.returncode not in (0, 1), result.stderr
    assert result.stderr.strip()
    assert b"Traceback" not in result.stderr


def test_a_database_in_a_missing_directory_is_refused(tmp_path: Path) -> None:
    words = ("-D", tmp_path / "no" / "such" / "x.svcdb", "--auth", "disabled", "--port", free_port())
    result = run_svc("start", *words, check=False)
    assert result.returncode not in (0, 1)
    assert b"Traceback" not in result.stderr


def test_tls(server: Server, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout",
            str(key),
            "-out",
            str(certificate),
        ],
        check=True,
        capture_output=True,
    )
    server.options = ("--tls-cert", str(certificate), "--tls-key", str(key))
    server.start()
    assert server.url.startswith("https://")
    trust = ssl.create_default_context(cafile=str(certificate))
    content = bytes(range(256)) * 5000
    for method, body in (("PUT", content), ("GET", None)):
        request = urllib.request.Request(server.url + "/files/secure", data=body, method=method)
        with urllib.request.urlopen(request, context=trust, timeout=30) as response:
            answer = response.read()
    assert answer == content
    with Client(server.url.replace("https", "http"), timeout=10) as plain, contextlib.suppress(OSError):
        assert plain.get("/files/secure").status == 400
    assert server.stop() == 0


def test_json_logs_are_json_lines(server: Server) -> None:
    server.options = ("--log-format", "json")
    client = server.start().client()
    assert client.get("/files/missing-file").status == 404
    assert server.stop() == 0
    lines = [json.loads(line) for line in server.log_text().splitlines() if line.strip()]
    assert lines
    assert all(isinstance(line, dict) for line in lines)


def test_no_plugins_no_routes(server: Server) -> None:
    server.options = ("--plugins", "auth.disabled")
    client = server.start().client()
    assert client.get("/system/health").status == 200
    assert client.get("/files/").status == 404


def test_an_option_of_a_plugin_that_the_database_does_not_use_is_refused(server: Server) -> None:
    allowed = ("--plugins", "files,auth.disabled,auth.self,events,users,sync")
    usual = ("-D", server.database, "--auth", "disabled", "--port", free_port())
    join = ("--join", "http://127.0.0.1:1")
    result = run_svc("start", *usual, *allowed[:1], "files,auth.disabled", *join, check=False)
    assert result.returncode == 2, "it has no such option"
    server.start_with(*map(str, usual), "--plugins", "files,auth.disabled")
    server.close()
    result = run_svc("start", *usual, *allowed, *join, check=False)
    assert result.returncode == 11
    assert b"--join needs the plugin 'sync'" in result.stderr
    assert b"svc plugins enable sync" in result.stderr


def test_who_can_be_reached_without_encryption_is_told(server: Server, tmp_path: Path) -> None:
    usual = ("-D", str(server.database), "--port", str(free_port()))
    for options, is_told in (
        (("--host", "0.0.0.0"), True),
        (("--host", "127.0.0.1"), False),
        (("--trusted-proxies", "127.0.0.1"), False),
    ):
        server.log.write_text("")
        server.start_with(*usual, *options)
        server.close()
        assert ("every address of this machine" in server.log.read_text()) == is_told, options
