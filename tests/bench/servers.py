"""The servers that are measured: each on a free port of 127.0.0.1, stopped by its process id."""

from __future__ import annotations

import contextlib
import os
import socket
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import processes
from served.auth_bench import TOKEN

from svc_default import PLUGINS
from svc_testing import DistributionFactory

_QUERIES = ("query", "parsers", "index.exact", "index.fulltext", "index.phonetic", "index.trigram")
ENABLED = tuple(dict.fromkeys([*(name for name in PLUGINS if not name.startswith("auth.")), *_QUERIES]))
"""The default plugins but for those of sign-in."""
OWN_WORKER = "svc_worker.Worker"
STOCK_WORKER = "gevent"
_SERVED = Path(__file__).parent / "served"
_PROGRAMS = Path(sys.executable).parent
_START_SECONDS = 120
_STOP_SECONDS = 40


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers: where, the process to stop, and what a request of it must carry.

    Attributes:
        port: on 127.0.0.1.
        pid: of the process that was started; workers may be its children.
        headers: sent with every request.
        environment: for programs that work on the same database.
    """

    port: int
    pid: int
    headers: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return "127.0.0.1", self.port

    def url(self, path: str) -> str:
        """The address of a path that begins with a slash."""
        return f"http://127.0.0.1:{self.port}{path}"

    def request(self, path: str) -> bytes:
        """A GET request as it goes over the wire."""
        lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *map(": ".join, self.headers.items())]
        return "\r\n".join([*lines, "", ""]).encode()

    def curl(self, *arguments: str) -> list[str]:
        """A command that fails on an answer other than 2xx; what comes back goes to standard output."""
        headers = [word for item in self.headers.items() for word in ("-H", ": ".join(item))]
        return ["curl", "-sSf", "-m", "300", *headers, *arguments]

    def get(self, path: str) -> bytes:
        """Gets a small file. Blocks."""
        return subprocess.run(self.curl(self.url(path)), check=True, capture_output=True).stdout

    def put(self, path: str, content: bytes) -> None:
        """Stores a small file, and makes sure that it can be read back. Blocks."""
        command = self.curl("-o", os.devnull, "-T", "-", self.url(path))
        subprocess.run(command, input=content, check=True)
        assert self.get(path.partition("?")[0]) == content

    def uploading(self, path: str, source: Path) -> list[str]:
        """A command that stores a file of the disk."""
        return self.curl("-o", os.devnull, "-T", str(source), self.url(path))

    def downloading(self, path: str) -> list[str]:
        """A command that gets a file, drops it, and prints how many bytes it was."""
        return self.curl("-o", os.devnull, "-w", "%{size_download}", self.url(path))


def program(name: str) -> str:
    """The path of a program of this Python environment."""
    return str(_PROGRAMS / name)


@contextlib.contextmanager
def svc(database: Path, *options: str) -> Iterator[Server]:
    """``svc start`` with the default plugins, a token that it asks for, one worker and no access log.

    Args:
        database: made when it is missing; one that exists must have been made by this function.
        options: further ones of ``svc start``.
    """
    port = free_port()
    plugins = ("auth.bench", *ENABLED)
    command = [program("svc"), "start", "-D", str(database), "--auth", "testing", "--workers", "1"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--access-log", "false", *options]
    with tempfile.TemporaryDirectory(prefix="auth-", dir=database.parent) as directory:
        environment = {**_with_auth(Path(directory)), "SVC_PLUGINS": ",".join(plugins)}
        with _running(command, database.parent, "svc", _says_ready, environment) as pid:
            yield Server(port, pid, {"Authorization": f"Bearer {TOKEN}"}, environment)


@contextlib.contextmanager
def running_svc(
    database: Path, auth: str, environment: Mapping[str, str] = os.environ, options: Sequence[str] = ()
) -> Iterator[tuple[Server, Path]]:
    """``svc start`` as it is installed, with an auth mode and one worker; and the file that it prints to."""
    port = free_port()
    command = [program("svc"), "start", "-D", str(database), "--auth", auth, "--workers", "1"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--access-log", "false", *options]
    with _running(command, database.parent, f"svc-{auth}", _says_ready, environment) as pid:
        yield Server(port, pid), database.parent / f"svc-{auth}.log"


@contextlib.contextmanager
def one_line_app(directory: Path, worker: str) -> Iterator[Server]:
    """gunicorn with one worker of a class, and a Falcon application that answers 1 KiB."""
    with _gunicorn(directory, "one_line", worker) as server:
        yield server


@contextlib.contextmanager
def sqlite_app(directory: Path) -> Iterator[Server]:
    """SQLite (WAL, synchronous=FULL) as the store of files, by svc's own worker class."""
    with _gunicorn(directory, "sqlite_files", OWN_WORKER) as server:
        yield server


@contextlib.contextmanager
def sqlite_queries_app(directory: Path) -> Iterator[Server]:
    """Queries of the table ``documents.sqlite`` in a directory, by svc's own worker class."""
    with _gunicorn(directory, "sqlite_queries", OWN_WORKER) as server:
        yield server


@contextlib.contextmanager
def nginx(directory: Path, root: Path) -> Iterator[Server]:
    """nginx with one worker and its file cache, serving the files below a directory."""
    port = free_port()
    configuration = directory / "nginx.conf"
    template = string.Template((_SERVED / "nginx.conf").read_text())
    configuration.write_text(template.safe_substitute(directory=directory, port=port, root=root))
    command = ["nginx", "-c", str(configuration), "-p", str(directory)]
    if os.geteuid() == 0:
        # Else its worker would be nobody, who may not enter the directory.
        command += ["-g", "user root;"]
    with _running(command, directory, "nginx", lambda _: _listens(port)) as pid:
        yield Server(port, pid)


@contextlib.contextmanager
def sse_loop(directory: Path) -> Iterator[Server]:
    """A loop for each client, by gunicorn's gevent worker."""
    with _gunicorn(directory, "sse_loop", STOCK_WORKER, "--worker-connections", "10000") as server:
        yield server


@contextlib.contextmanager
def nats(directory: Path) -> Iterator[Server]:
    """NATS without JetStream: it stores nothing."""
    port = free_port()
    command = ["nats-server", "-a", "127.0.0.1", "-p", str(port)]
    with _running(command, directory, "nats", lambda _: _listens(port)) as pid:
        yield Server(port, pid)


@contextlib.contextmanager
def seaweed(directory: Path) -> Iterator[Server]:
    """SeaweedFS: master, volume server and filer in one process; the port is the filer's."""
    data = directory / "seaweed"
    data.mkdir()
    options = {"dir": data, "ip": "127.0.0.1", "ip.bind": "127.0.0.1", "volume.max": 20}
    # Each of the three listens for gRPC as well, 10,000 above its port unless told.
    for part in ("master", "volume", "filer"):
        options[f"{part}.port"], options[f"{part}.port.grpc"] = free_port(), free_port()
    options |= {"master.telemetry": "false", "filer.localSocket": data / "filer.sock"}
    command = [program("weed"), "server", "-filer", *(f"-{name}={value}" for name, value in options.items())]
    port = int(str(options["filer.port"]))
    ports = {str(value) for name, value in options.items() if ".port" in name}
    try:
        with _running(command, directory, "weed", lambda _: _listens(port) and _stores(port), grace=1) as pid:
            yield Server(port, pid)
    finally:
        # It takes half a minute to say goodbye; killed, it leaves sockets behind, outside of its directory.
        for socket_path in Path("/tmp").glob("seaweedfs-*.sock"):
            if ports & set(socket_path.stem.split("-")):
                socket_path.unlink(missing_ok=True)


def _with_auth(directory: Path) -> dict[str, str]:
    """The environment of processes that shall see the plugin ``auth.bench``."""
    distributions = DistributionFactory(directory, in_process=False)
    source = (_SERVED / "auth_bench.py").read_text()
    entry_points = {"auth.bench": "auth_bench:PLUGIN"}
    distributions.install("svc-auth-bench", modules={"auth_bench": source}, entry_points=entry_points)
    return distributions.environment(os.environ)


@contextlib.contextmanager
def _gunicorn(directory: Path, module: str, worker: str, *options: str) -> Iterator[Server]:
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--no-control-socket", "-k", worker, "--keep-alive", "75"]
    command += ["-b", f"127.0.0.1:{port}", "--pythonpath", str(_SERVED), *options, f"{module}:app"]
    with _running(command, directory, f"{module}-{worker}", lambda _: _listens(port)) as pid:
        yield Server(port, pid)


@contextlib.contextmanager
def _running(
    command: Sequence[str],
    directory: Path,
    name: str,
    ready: Callable[[str], bool],
    environment: Mapping[str, str] = os.environ,
    grace: float = _STOP_SECONDS,
) -> Iterator[int]:
    log = directory / f"{name}.log"
    with log.open("w") as stream:
        variables = {**environment, "PYTHONUNBUFFERED": "1"}
        process = processes.start(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=variables
        )
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not ready(log.read_text(errors="replace")):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} does not answer: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)
        yield process.pid
    finally:
        processes.stop(process, grace)


def free_port() -> int:
    """Returns a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _says_ready(log: str) -> bool:
    return "svc ready" in log


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _stores(port: int) -> bool:
    command = ["curl", "-sf", "-m", "5", "-o", os.devnull, "-T", "-", f"http://127.0.0.1:{port}/ready/file"]
    return subprocess.run(command, input=b"x").returncode == 0
