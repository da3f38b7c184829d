"""Fixtures of the tests of maintenance."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test's database file goes."""
    return tmp_path / "x.svcdb"
