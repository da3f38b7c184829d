"""Load by wrk: fast enough that the server is what is measured, also when it is nginx."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from load import Load
from servers import Server

_SCRIPT = Path(__file__).parent / "served" / "requests.lua"


def get(server: Server, path: str, size: int, connections: int, seconds: float) -> Load:
    """Gets one file again and again. Blocks.

    Args:
        server: is asked.
        path: of the file.
        size: its bytes; each answer must bring them all.
        connections: how many at once.
        seconds: how long, rounded up to whole seconds.
    """
    return _run(server, path, connections, seconds, "GET", least=size)


def put(server: Server, path: str, connections: int, seconds: float, run: str) -> Load:
    """Puts 1 KiB under a new name each time, no two alike; then gets one of them back. Blocks.

    Args:
        server: is asked.
        path: what the names are appended to, before the query if there is one.
        connections: how many at once.
        seconds: how long, rounded up to whole seconds.
        run: names this run, so that it writes to no name of another.
    """
    load = _run(server, path, connections, seconds, "PUT", run)
    base, _, _ = path.partition("?")
    # wrk makes one request only to look at it.
    content = server.get(f"{base}{run}-2")
    assert len(content) == 1024 and content.startswith(f"{run}-2".encode()), content[:40]
    return load


def _run(
    server: Server, path: str, connections: int, seconds: float, method: str, run: str = "", least: int = 0
) -> Load:
    duration = max(1, round(seconds))
    headers = [word for item in server.headers.items() for word in ("-H", ": ".join(item))]
    command = ["wrk", "-t1", f"-c{connections}", f"-d{duration}s", "-s", str(_SCRIPT), *headers]
    done = subprocess.run(
        [*command, server.url(path), "--", method, run],
        capture_output=True,
        text=True,
        check=True,
        timeout=duration + 30,
    )
    figures = json.loads(done.stdout.splitlines()[-1])
    if figures.pop("errors"):
        raise RuntimeError(f"{method} {path}: answers other than 2xx, or cut connections: {done.stdout}")
    requests, transferred = figures.pop("requests"), figures.pop("bytes")
    if transferred < requests * least:
        raise RuntimeError(f"{method} {path}: {requests} answers brought only {transferred} bytes")
    return Load(**figures)
