"""Fixtures of the database's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc.database import Database
from svc.database.committer import CommitRequest
from svc.database.operations import Put

BOOT_USERS = ("svc.objects.environment_notes", "svc.database.state")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test's database file goes."""
    return tmp_path / "x.svcdb"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    """A new database, closed afterwards."""
    with Database(path) as opened:
        yield opened


@pytest.fixture
def reboot(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets the database believe that the machine was started anew."""

    def start_anew() -> None:
        for module in BOOT_USERS:
            monkeypatch.setattr(f"{module}.boot_id", lambda: b"another boot....")

    return start_anew


@pytest.fixture
def request_for() -> Callable[[Database, str, bytes], CommitRequest]:
    """Makes a request to put a file, as a transaction hands it to the committer."""

    def make(database: Database, name: str, content: bytes) -> CommitRequest:
        stored = database.store_bytes(content)
        return CommitRequest("HEAD", [Put((name,), stored, None)], stored.pending)

    return make
