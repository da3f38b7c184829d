"""Fixtures of the black-box tests: servers on fresh databases, and clients of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc_blackbox.client import Client
from svc_blackbox.server import Server


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that need nothing but a directory of their own in a database."""
    server = Server(tmp_path_factory.mktemp("shared") / "shared.svcdb").start()
    yield server
    server.close()


@pytest.fixture
def http(shared_server: Server) -> Iterator[Client]:
    """A connection to the shared server."""
    with Client(shared_server.url) as client:
        yield client


@pytest.fixture
def area(request: pytest.FixtureRequest) -> str:
    """A directory of the shared database that only this test writes to."""
    file, _, name = request.node.nodeid.split("tests/")[-1].partition("::")
    parts = [re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-")[-120:] for part in (file, name)]
    return "/" + "/".join(parts)


@pytest.fixture
def new_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers on databases of this test: ``new_server("name", "--workers", "2")``."""
    servers: list[Server] = []

    def start(name: str = "data", *options: str) -> Server:
        server = Server(tmp_path / f"{name}.svcdb", *options)
        servers.append(server)
        return server.start()

    yield start
    for server in servers:
        server.close()
