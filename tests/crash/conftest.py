"""Fixtures of the crash tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.scale import EXTENT
from long_runs import directory_in_memory

HERE = Path(__file__).parent
LONG_SECONDS = 4000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In a long run no test of these has the time limit of a short one."""
    EXTENT.lift_time_limits(items, HERE, LONG_SECONDS)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: thousands of images are written, and synced for nothing."""
    with directory_in_memory(tmp_path, "svc-crash-") as directory:
        yield directory
