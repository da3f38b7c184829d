"""Real servers in processes of their own, with routes from a distribution made here."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_testing import DistributionFactory, install_memory_storage, install_testing_auth
from svc_testing.prepared import PreparedProcess, run_to_end, start_svc

Process = subprocess.Popen[str] | PreparedProcess

PLUGIN = """
import time
from svc.log import LocalFileBackend
from svc.pipeline import body_stream, public, send_json, send_stream
from svc.plugins import PluginDescriptor, hookimpl

DESCRIPTOR = PluginDescriptor("test.server", "1.0", "For tests", (1, 1), "svc_test_server")

class Echo:
    @public
    def on_put(self, req, resp):
        size = sum(len(piece) for piece in iter(lambda: stream.read(65536), b"")) if (
            stream := body_stream(req, 1000000)) else 0
        send_json(resp, {"received": size})
    @public
    def on_get(self, req, resp):
        time.sleep(float(req.params.get("seconds", 0)))
        send_json(resp, {"done": True})

class Endless:
    @public
    def on_get(self, req, resp):
        def pieces():
            yield b"first"
            while not req.context.lifetime.wait(0.5):
                yield b"more"
            yield b"last"
        send_stream(resp, pieces(), None, content_type="text/plain")

class Elsewhere:
    # Stands for a medium of its own: elsewhere://user:key@name is a file in the current directory.
    scheme = "elsewhere"
    is_shared = True
    def _path(self, url):
        return "elsewhere-" + url.rpartition("@")[2]
    def open(self, url, *, read_only, create):
        return LocalFileBackend().open(self._path(url), read_only=read_only, create=create)
    def locate(self, url):
        return LocalFileBackend().locate(self._path(url))

@hookimpl
def svc_register_storage_backends(storage_backends):
    storage_backends.add(Elsewhere())

@hookimpl
def svc_register_routes(routes):
    routes.add("/echo", Echo())
    routes.add("/endless", Endless())
"""

CLUSTER = """
import msgspec
from svc.pipeline import public, send_json
from svc.plugins import PluginDescriptor, Secret, StartOption, hookimpl

class Settings(msgspec.Struct):
    join: str | None = None
    token: Secret = Secret()
    peers: list[str] = []
    cluster_tls: bool = True
    expiry: int = 0

PLUGIN = PluginDescriptor(
    "test.cluster", "1.0", "Has options", (1, 1), "svc_test_cluster", Settings,
    options=(
        StartOption("join", "Joins the cluster of this node.", metavar="URL"),
        StartOption("join-token", "Key of that node.", setting="token", metavar="KEY", secret=True),
        StartOption("peers", "Other nodes.", metavar="URL,..."),
        StartOption("cluster-tls", "Whether peers must be reached by TLS.", metavar="BOOL"),
        StartOption("expiry", "Seconds.", metavar="N"),
    ),
)

class Show:
    @public
    def on_get(self, req, resp):
        settings = req.context.configuration
        send_json(resp, [settings.join, settings.token.reveal(), settings.peers, settings.cluster_tls])

@hookimpl
def svc_register_routes(routes):
    routes.add("/cluster", Show())
"""
"""A plugin with options of ``svc start``; it is installed, and not among the allowed ones."""

SVC = [sys.executable, "-c", "from svc_cli import main; main()"]
READY = re.compile(r"svc ready at (https?)://([^ ]*):(\d+) serving (.*) at version ([0-9a-f]{64})")


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a server: the test's plugin is allowed in it, and an auth mode for tests."""
    distributions = DistributionFactory(tmp_path_factory.mktemp("site"), in_process=False)
    distributions.install(
        "svc-test-server",
        modules={"svc_test_server": PLUGIN},
        entry_points={"test.server": "svc_test_server:DESCRIPTOR"},
    )
    distributions.install(
        "svc-test-cluster",
        modules={"svc_test_cluster": CLUSTER},
        entry_points={"test.cluster": "svc_test_cluster:PLUGIN"},
    )
    install_testing_auth(distributions)
    install_memory_storage(distributions)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    chosen = {"SVC_PLUGINS": "test.server,auth.testing,storage.memory", "SVC_AUTH": "testing"}
    return distributions.environment({**kept, **chosen})


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DistributionFactory]:
    """The plugin ``test.cluster``, seen by this process."""
    factory = DistributionFactory(tmp_path / "site")
    factory.install(
        "svc-test-cluster",
        modules={"svc_test_cluster": CLUSTER},
        entry_points={"test.cluster": "svc_test_cluster:PLUGIN"},
    )
    yield factory
    factory.close()


class RunningServer:
    """A server process and its address."""

    def __init__(self, process: Process, host: str, port: int, log: Path) -> None:
        self.process = process
        self.host = host
        self.port = port
        self.log = log
        self.ready = ""

    def get(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        connection.request(method, path)
        answer = connection.getresponse()
        outcome = answer.status, answer.read()
        connection.close()
        return outcome

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(40)


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``svc`` to its end."""

    def run_svc(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        done = run_to_end(SVC, *words, env={**environment, **variables}, cwd=tmp_path, timeout=60)
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run_svc


class Launcher:
    """Starts servers in a directory, and ends them."""

    def __init__(self, environment: dict[str, str], directory: Path) -> None:
        self._environment = environment
        self._directory = directory
        self._running: list[Process] = []

    def __call__(self, *words: str, gunicorn: list[str] | None = None) -> RunningServer:
        if gunicorn is not None:
            return self._start_gunicorn(gunicorn)
        words = ("start", "--port", "0", "--workers", "1", *words)
        process, log = self._start(lambda **streams: start_svc(SVC, *words, **streams))
        assert process.stdout is not None
        line = process.stdout.readline()
        match = READY.match(line)
        assert match, line + log.read_text()
        server = RunningServer(process, match[2], int(match[3]), log)
        server.ready = line
        return server

    def _start_gunicorn(self, words: list[str]) -> RunningServer:
        command = [sys.executable, "-m", "gunicorn", "--no-control-socket", "-b", "127.0.0.1:0", *words]
        process, log = self._start(
            lambda **streams: subprocess.Popen(command, start_new_session=True, **streams)
        )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            match = re.search(r"Listening at: http://127.0.0.1:(\d+)", log.read_text())
            if match:
                return RunningServer(process, "127.0.0.1", int(match[1]), log)
            time.sleep(0.05)
        raise AssertionError(log.read_text())

    def _start(self, start: Callable[..., Process]) -> tuple[Process, Path]:
        log = self._directory / f"log-{len(self._running)}"
        with log.open("w") as stream:
            process = start(
                cwd=self._directory,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
            )
        self._running.append(process)
        return process, log

    def end(self) -> None:
        for process in self._running:
            if process.poll() is None:
                process.kill()
            process.wait(10)
            if process.stdout is not None:
                process.stdout.close()


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Waits until a condition holds, and returns what it gave."""

    def wait(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
        deadline = time.monotonic() + seconds
        while True:
            found = condition()
            if found:
                return found
            assert time.monotonic() < deadline, "it did not come about in time"
            time.sleep(0.02)

    return wait


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Iterator[Launcher]:
    """Starts servers, which end with the test."""
    launcher = Launcher(environment, tmp_path)
    yield launcher
    launcher.end()


@pytest.fixture(scope="module")
def shared(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for the tests that leave it as it was."""
    launcher = Launcher(environment, tmp_path_factory.mktemp("shared"))
    yield launcher()
    launcher.end()
