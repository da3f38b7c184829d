"""Real nodes: servers with a background process, on loopback."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from svc_testing import Server, free_port, start_server

PLUGINS = (
    "auth.disabled",
    "auth.self",
    "users",
    "files",
    "versions",
    "events",
    "metrics",
    "sync",
    "sync.http",
)
QUICK = ("--background", "true", "--plugin-option", "sync.interval_seconds=1")


class Cluster:
    """Servers of a test, each with its address."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.stack = ExitStack()
        self.ports: dict[str, int] = {}

    def start(self, name: str, *options: str, auth: str = "disabled") -> Server:
        """Starts a node, or starts it again on its port."""
        port = self.ports.setdefault(name, free_port())
        address = ("--port", str(port), "--cluster-address", f"http://127.0.0.1:{port}")
        server = start_server(
            self.directory / f"{name}.svcdb",
            *QUICK,
            *address,
            *("--cluster-label", name, "--auth", auth, "--host", "127.0.0.1"),
            *options,
            plugins=PLUGINS,
        )
        return self.stack.enter_context(server)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    with made.stack:
        yield made


def ask(
    server: Server, method: str, path: str, body: Any = None, status: int | None = 200, **how: Any
) -> Any:
    """Sends JSON, expects a status, and returns the JSON of the answer."""
    headers = {"Content-Type": "application/json", **how.pop("headers", {})}
    payload = None if body is None else json.dumps(body).encode()
    answer = server.request(method, path, body=payload, headers=headers, **how)
    assert status is None or answer.status == status, (method, path, answer.status, answer.body)
    return answer.json()


def root_key(server: Server) -> str:
    """The root key that a new database has made."""
    found = re.search(r"Root key: (\S+)", server.output)
    assert found is not None, server.output
    return found[1]


def bearer(server: Server, key: str | None = None) -> dict[str, str]:
    """What the owner of a key sends; of root's without one."""
    token = ask(server, "POST", "/auth/token", {"api_key": key or root_key(server)})["token"]
    return {"Authorization": f"Bearer {token}"}


def put(server: Server, path: str, content: bytes, content_type: str = "text/plain", **headers: str) -> None:
    fields = {"Content-Type": content_type, **headers}
    answer = server.request("PUT", f"/files{path}", body=content, headers=fields)
    assert answer.status in (200, 201), answer


def head(server: Server, **how: Any) -> str:
    found: str = ask(server, "GET", "/sync/status", **how)["head"]
    return found


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 40.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def wait_for_agreement(*servers: Server, seconds: float = 60.0, **how: Any) -> None:
    """Waits until all have the same version."""
    wait_until(lambda: len({head(one, **how) for one in servers}) == 1, "all nodes agree", seconds)
