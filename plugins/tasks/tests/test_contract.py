"""A type that counts keeps the contract of task types, and the contract finds those that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from svc_tasks.testing import TaskTypeContract

from svc.database import Database
from svc_testing import PluginContract


class TestTasksPlugin(PluginContract):
    plugin_id = "tasks"


class TestCounting(TaskTypeContract):
    plugin_id = "acme.strange"
    args: ClassVar[dict[str, Any]] = {"to": 60, "batch": 3, "pause": 0.01}
    wrong_args = ({"to": "x"}, {"batch": None}, {"name": 3})

    @pytest.fixture
    def extension(self) -> Any:
        from acme_strange.types import Count

        return Count()

    def check(self, database: Database, result: Any, directory: Path) -> None:
        assert result == {"counted": 60}
        found = [name for name, _ in database.at().entries(("counted", "count"))]
        assert found == [f"{number:06}" for number in range(60)]
