"""A file that a program made with the library alone was never given any plugins: commands work on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc import Database
from svc_cli import main


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "x.svcdb"
    with Database(path) as opened, opened.transaction() as transaction:
        transaction.put(("a",), b"content")
    return path


def exit_code(database: Path, words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main([*words.split(), "-D", str(database)])
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    "words", ["gc --dry-run", "cron list", "task list", "share list /a", "log", "query /", "snapshot list"]
)
def test_what_only_reads_works(database: Path, words: str) -> None:
    before = database.read_bytes()
    assert exit_code(database, words) == 0
    assert database.read_bytes() == before


def test_no_plugin_has_settings_there_yet(database: Path) -> None:
    assert exit_code(database, "plugins config files") == 11
    assert exit_code(database, "gc") == 0
    assert exit_code(database, "plugins config files") == 0
