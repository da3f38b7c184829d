"""The task type keeps the contract of task types: cancelled, killed and done twice, it skips nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from svc_query.api import reindex_of
from svc_query.indexing import INDEX_VIEW, keys
from svc_task_reindex.task import REINDEX, ReindexTask
from svc_tasks.testing import TaskTypeContract

from svc.plugin import Database

FILES = 330


class TestReindex(TaskTypeContract):
    plugin_id = "task.reindex"
    args: ClassVar = {"path": "/d", "force": True, "index_flush_ms": 1}
    wrong_args = ({"path": "/.svc-system"}, {"force": "yes"}, {"index_flush_writes": 0})

    @pytest.fixture
    def extension(self) -> ReindexTask:
        return REINDEX

    def prepare(self, database: Database, directory: Path) -> None:
        with database.transaction() as transaction:
            for number in range(FILES):
                transaction.put(("d", f"{number:04}"), str(number).encode())
            transaction.put(("other",), b"")
        first = reindex_of(database).numbering()[1]
        (directory / "first").write_text(str(first))

    def check(self, database: Database, result: Any, directory: Path) -> None:
        first = int((directory / "first").read_text())
        numbers: Mapping[bytes, int] = database.view(INDEX_VIEW).read(
            lambda storage: {key[1:]: int.from_bytes(value, "big") for key, value in storage.scan(keys.PATH)}
        )
        assert result["files"] == FILES
        assert result["failed"] == 0
        assert len(numbers) == FILES + 1
        assert all(number >= first for key, number in numbers.items() if key != b"other")
        assert reindex_of(database).next_files((), ("d", f"{FILES - 1:04}"), 9) == [("other",)]
