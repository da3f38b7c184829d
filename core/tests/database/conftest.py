"""Fixtures of the database's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.database import Database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test's database file goes."""
    return tmp_path / "x.svcdb"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    """A new database, closed afterwards."""
    with Database(path) as opened:
        yield opened
