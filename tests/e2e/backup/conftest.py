"""A server with a short history to back up, and empty ones to import into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc_blackbox.backups import Source, fill, version_of
from svc_blackbox.client import Client
from svc_blackbox.server import Server
from svc_blackbox.versions import PLURAL, fork_names, head_version, log_entries, snapshot_names, tree


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    """The database that is backed up; tests only read it."""
    server = Server(tmp_path_factory.mktemp("source") / "source.svcdb").start()
    found = fill(server)
    yield found
    server.close()
    assert version_of(server.database) == found.roots["HEAD"]


@pytest.fixture
def client(source: Source) -> Iterator[Client]:
    """A connection to the server of the source."""
    with Client(source.server.url, timeout=120) as opened:
        yield opened


@pytest.fixture
def fresh_target(new_server: Callable[..., Server]) -> Client:
    """A connection to a server on an empty database of this test, which has never seen a version."""
    return new_server("target", "--workers", "1").client(timeout=120)


@pytest.fixture(scope="session")
def target_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that the tests import into one after the other."""
    server = Server(tmp_path_factory.mktemp("target") / "target.svcdb").start()
    yield server
    server.close()


@pytest.fixture
def target(target_server: Server) -> Iterator[Client]:
    """A connection to a server whose HEAD is empty, without snapshots and forks; it has older versions."""
    with Client(target_server.url, timeout=120) as client:
        first = min(log_entries(client), key=lambda entry: entry["sequence"], default=None)
        empty = head_version(client) if first is None else (first["parent"] or first["version"])
        assert client.post("/versions/promote", {"hash": empty}).status == 200
        for snapshot in snapshot_names(client):
            assert client.delete(PLURAL.snapshot(snapshot)).status == 200
        for fork in fork_names(client):
            assert client.delete(PLURAL.fork(fork)).status == 200
        assert tree(client) == {}
        yield client


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[bytes, str], Path]:
    """Writes bytes into a file of this test."""

    def save(data: bytes, name: str = "saved") -> Path:
        path = tmp_path / f"{name}.svcdb"
        path.write_bytes(data)
        return path

    return save
