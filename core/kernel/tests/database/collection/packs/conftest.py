"""A history that was never collected, and copies of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from history_material import HISTORY, commit
from svc.database import Database


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a history that was never collected."""
    path = tmp_path_factory.mktemp("history") / "x.svcdb"
    with Database(path) as database:
        for number in range(HISTORY):
            commit(database, number)
    return path


@pytest.fixture
def path(template: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    path = tmp_path / "x.svcdb"
    shutil.copy(template, path)
    shutil.copytree(f"{template}.d", f"{path}.d")
    return path
