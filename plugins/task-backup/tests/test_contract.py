"""The task type keeps the contract of task types: cancelled, killed and done twice, it leaves whole files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import pytest
from svc_task_backup.task import BACKUP, BackupTask
from svc_tasks.testing import TaskTypeContract

from svc.plugin import Database
from svc_backup.format import IncomingFile, check_incoming


class TestBackup(TaskTypeContract):
    plugin_id = "task.backup"
    args: ClassVar = {"retention_count": 3}
    wrong_args = ({"backup_dir": "../x"}, {"retention_count": -1}, {"chain_length": 0}, {"snapshot": 1})

    @pytest.fixture
    def extension(self) -> BackupTask:
        return BACKUP

    def prepare(self, database: Database, directory: Path) -> None:
        with database.transaction() as transaction:
            for number in range(12):
                transaction.put((f"large{number}",), database.store_bytes(os.urandom(2_000_000)))

    def check(self, database: Database, result: Any, directory: Path) -> None:
        backups = Path(result["backup_dir"])
        names = sorted(os.listdir(backups))
        assert names[-1] == result["file"]
        assert len(names) <= 3
        for name in names:
            with (backups / name).open("rb") as stream, IncomingFile(stream.fileno(), name) as file:
                check_incoming(file)
                assert file.root == database.head().root
