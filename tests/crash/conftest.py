"""Fixtures of the crash tests."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: thousands of images are written, and synced for nothing."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    directory = Path(tempfile.mkdtemp(prefix="svc-crash-", dir=MEMORY))
    yield directory
    shutil.rmtree(directory)
