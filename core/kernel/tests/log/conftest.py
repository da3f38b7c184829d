"""A fresh log file for each test, and records to fill it with."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.log import FIRST, Log


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.svcdb"


@pytest.fixture
def log(path):
    with Log.open(path) as opened:
        opened.recover(FIRST)
        yield opened


@pytest.fixture
def forget(path):
    """Takes away what the shared memory knows, as a restart of the machine does."""

    def act(where: Path = path) -> None:
        tail = where.with_name(where.name + ".d") / "tail"
        tail.unlink(missing_ok=True)

    return act
