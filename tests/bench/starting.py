"""How long a start takes: a server until it is healthy, a command until its end, beside those of others."""

from __future__ import annotations

import http.client
import itertools
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from importing import environment_of_peers
from measurement import Bench
from report import interleave, seconds_of
from servers import program

from svc.database import Database

_AIM_SERVER_MS = 700
_AIM_VERSION_MS = 100
_AIM_LIST_MS = 250
_numbers = itertools.count()


def starts(bench: Bench) -> None:
    """svc start until health is 200, svc --version and svc ls, beside Python's imports, git and restic."""
    present = bench.directory / "present.svcdb"
    with Database(present) as database, database.transaction() as transaction:
        transaction.put(("file",), b"x" * 1024)
    store = bench.directory / "restic"
    environment = environment_of_peers(bench.directory)
    _call(environment, "restic", "-q", "init", "-r", store)

    def new() -> float:
        return _milliseconds_to_health(bench.directory / f"new-{next(_numbers)}.svcdb")

    fresh, known, version, listing, imports, git, restic = interleave(
        bench.rounds(5),
        new,
        partial(_milliseconds_to_health, present),
        partial(_milliseconds, environment, program("svc"), "--version"),
        partial(_milliseconds, environment, program("svc"), "ls", "-D", present),
        partial(_milliseconds, environment, sys.executable, "-c", "import falcon, gevent, gunicorn"),
        partial(_milliseconds, environment, "git", "--version"),
        partial(_milliseconds, environment, "restic", "-q", "--no-cache", "snapshots", "-r", store),
    )
    bare = "python -c 'import falcon, gevent, gunicorn'"
    for work, ours, peer, theirs, aim in (
        ("svc start on a new database, to 200 of health", fresh, bare, imports, _AIM_SERVER_MS),
        ("svc start on one that exists, to 200 of health", known, bare, imports, _AIM_SERVER_MS),
        ("svc --version", version, "git --version", git, _AIM_VERSION_MS),
        ("svc ls of a local database", listing, "restic snapshots", restic, _AIM_LIST_MS),
    ):
        bench.report.limit(work, ours, "ms", aim)
        bench.report.compare(work, ours, "ms", peer, theirs)


def _milliseconds_to_health(database: Path) -> float:
    """Starts a server, and returns how long the first 200 took; the server is stopped."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = (program("svc"), "start", "-D", str(database), "--auth", "disabled", "--port", str(port))
    began = time.perf_counter()
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not _is_healthy(port):
            if server.poll() is not None or time.perf_counter() - began > 60:
                raise RuntimeError("svc start did not become healthy")
            time.sleep(0.005)
        return (time.perf_counter() - began) * 1000
    finally:
        server.terminate()
        server.wait(30)


def _is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/system/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _milliseconds(environment: Mapping[str, str], *command: object) -> float:
    return seconds_of(partial(_call, environment, *command)) * 1000


def _call(environment: Mapping[str, str], *command: object) -> None:
    words = [str(word) for word in command]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=60, env=environment)
