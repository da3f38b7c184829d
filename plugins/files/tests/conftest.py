"""Fixtures of the plugin's tests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path as FilePath
from unittest.mock import patch

import pytest

from svc.log.file_operations import FileOperations


@pytest.fixture(scope="module")
def fast_directory() -> Iterator[FilePath]:
    """A directory for many short-lived databases, whose commits do not wait for a disk."""
    with patch.object(FileOperations, "fdatasync", staticmethod(lambda _: None)):
        path = FilePath(
            tempfile.mkdtemp(prefix="svc-test-", dir="/dev/shm" if FilePath("/dev/shm").is_dir() else None)
        )
        yield path
        shutil.rmtree(path)
