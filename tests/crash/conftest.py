"""Fixtures of the crash tests."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.scale import SCALE

MEMORY = Path("/dev/shm")
HERE = Path(__file__).parent
LONG_SECONDS = 4000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In a long run no test of these has the time limit of a short one."""
    for item in items:
        if SCALE > 1 and item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LONG_SECONDS))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: thousands of images are written, and synced for nothing."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    directory = Path(tempfile.mkdtemp(prefix="svc-crash-", dir=MEMORY))
    yield directory
    shutil.rmtree(directory)
