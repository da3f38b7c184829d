"""Real processes: the command line and a server, as a user starts them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from svc_testing.distributions import DistributionFactory
from svc_testing.prepared import PreparedProcess, run_to_end, start_svc
from svc_testing.testing_auth import install_testing_auth, with_testing_auth

__all__ = ["Completed", "Response", "Server", "free_port", "run_svc", "start_server", "svc_command"]

_URL = re.compile(r"https?://[^\s,;\"']+")
START_SECONDS = 60.0
STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that has ended.

    Attributes:
        exit_code: its exit code.
        stdout: what it printed.
        stderr: what it printed as errors.
    """

    exit_code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """The standard output as JSON."""
        return msgspec.json.decode(self.stdout)


@dataclass(frozen=True, slots=True)
class Response:
    """An answer of a server; header names are lower-case, and of several with one name the last is there."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return msgspec.json.decode(self.body)


def svc_command(python: str | None = None) -> list[str]:
    """The beginning of a command line that runs ``svc`` of an interpreter (default: this one)."""
    code = "import sys; from svc_cli import main; sys.argv[0] = 'svc'; sys.exit(main())"
    return [python or sys.executable, "-c", code]


def run_svc(
    *arguments: str | os.PathLike[str],
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    python: str | None = None,
    timeout: float = 60.0,
) -> Completed:
    """Runs ``svc`` in a process of its own and waits for its end.

    Args:
        arguments: the arguments.
        cwd: working directory.
        env: variables to set on top of this process's; its own ``SVC_*`` variables are not passed on.
        stdin: standard input.
        python: interpreter of another environment.
        timeout: seconds.
    """
    words = [os.fspath(argument) for argument in arguments]
    variables = _environment(env)
    if python is None:
        completed = run_to_end(svc_command(), *words, env=variables, cwd=cwd, stdin=stdin, timeout=timeout)
    else:
        completed = subprocess.run(
            [*svc_command(python), *words],
            cwd=cwd,
            env=variables,
            input=stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    return Completed(
        completed.returncode,
        completed.stdout.decode("utf-8", "replace"),
        completed.stderr.decode("utf-8", "replace"),
    )


def free_port() -> int:
    """Returns a TCP port of the loopback address that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A running ``svc start``.

    Args:
        process: the process, with its standard output and errors piped.
        database_path: what it serves.

    Attributes:
        url: where it listens, without a trailing slash; from the line that it prints when it is ready.
        process: the process.
        database_path: what it serves.
    """

    def __init__(self, process: subprocess.Popen[bytes] | PreparedProcess, database_path: Path) -> None:
        self.process = process
        self.database_path = database_path
        self.url = ""
        self._stdout: list[str] = []
        self._stderr: list[str] = []
        self._ready = threading.Event()
        self._readers = [
            threading.Thread(target=self._read, args=(process.stdout, self._stdout), daemon=True),
            threading.Thread(target=self._read, args=(process.stderr, self._stderr), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return "".join(self._stdout)

    @property
    def errors(self) -> str:
        """What it has written to standard error so far: the log."""
        return "".join(self._stderr)

    def wait_until_ready(self, seconds: float = START_SECONDS) -> None:
        """Waits for the line that says where it listens.

        Raises:
            RuntimeError: it ended, or did not get ready in time; the message holds its output.
        """
        deadline = time.monotonic() + seconds
        while not self._ready.wait(0.05):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(
                    f"svc start did not get ready (exit code {self.process.returncode}).\n"
                    f"{self.output}\n{self.errors}"
                )

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> Response:
        """Sends a request and returns the answer, whatever its status."""
        request = urllib.request.Request(
            self.url + path, data=body, method=method, headers=dict(headers or {})
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=timeout) as answer:
                return _response(answer)
        except urllib.error.HTTPError as error:
            with error:
                return _response(error)

    def get(self, path: str) -> Response:
        """Sends a GET."""
        return self.request("GET", path)

    def stop(self) -> int:
        """Ends it gracefully by SIGTERM, and returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        self._join()
        return self.process.wait()

    def kill(self) -> None:
        """Ends it and the processes it started at once, as a crash of the machine's software would."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._join()

    def _join(self) -> None:
        for reader in self._readers:
            reader.join(5)

    def _read(self, stream: Any, lines: list[str]) -> None:
        with stream:
            for line in iter(stream.readline, b""):
                text = line.decode("utf-8", "replace")
                lines.append(text)
                found = _URL.search(text)
                if lines is self._stdout and found and not self._ready.is_set():
                    self.url = found.group().rstrip("/")
                    self._ready.set()


@contextmanager
def start_server(
    database_path: str | os.PathLike[str],
    *options: str,
    plugins: Sequence[str] | None = (),
    env: Mapping[str, str] | None = None,
    python: str | None = None,
    wait: bool = True,
) -> Iterator[Server]:
    """Runs ``svc start`` on a free port until the block ends; then it is stopped by SIGTERM.

    Every request is root's, by the auth mode ``testing``, which is installed for this server; an option
    ``--auth`` chooses another one.

    Args:
        database_path: the database; made when it is missing. One that exists has ``auth.testing`` enabled
            if the fixtures of this kit made it.
        options: further options; there is one worker and no background process unless they say otherwise.
        plugins: ids of the plugins that it has. None says nothing of plugins, so that all installed ones
            are allowed and the default set is enabled; name an auth mode of these by ``--auth`` then.
        env: variables to set.
        python: interpreter of another environment.
        wait: whether to wait until it is ready.
    """
    defaults = {"--port": str(free_port()), "--workers": "1", "--background": "false"}
    variables = dict(env or {})
    with tempfile.TemporaryDirectory(prefix="svc-testing-") as directory:
        if plugins is not None and not _is_among("--auth", options):
            distributions = DistributionFactory(Path(directory), in_process=False)
            install_testing_auth(distributions)
            variables = distributions.environment(variables)
            plugins = with_testing_auth(plugins)
            defaults["--auth"] = "testing"
        if plugins is not None:
            defaults["--plugins"] = ",".join(plugins)
        arguments = ["start", "-D", os.fspath(database_path), *options]
        for name, value in defaults.items():
            if not _is_among(name, options):
                arguments += [name, value]
        process = start_svc(
            svc_command(python),
            *arguments,
            env=_environment(variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            prepared=python is None,
        )
        server = Server(process, Path(database_path))
        try:
            if wait:
                server.wait_until_ready()
            yield server
        finally:
            server.stop()


def _is_among(name: str, options: Sequence[str]) -> bool:
    return any(option == name or option.startswith(name + "=") for option in options)


def _response(answer: Any) -> Response:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return Response(answer.status, headers, answer.read())


def _environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    return {**inherited, **(extra or {})}
