"""The plugin, by the contracts of svc and of tasks."""

from __future__ import annotations

import pytest
from svc_hello.descriptor import PLUGIN
from svc_hello.task import CountTask
from svc_tasks.testing import TaskTypeContract

from svc_testing import PluginContract


class TestPlugin(PluginContract):
    plugin_id = PLUGIN.id


class TestCount(TaskTypeContract):
    plugin_id = PLUGIN.id
    args = {"path": "/books"}
    wrong_args = ({"path": 3}, {"path": "/../a"})

    @pytest.fixture
    def extension(self):
        return CountTask()

    def prepare(self, database, directory):
        with database.transaction() as changes:
            for number in range(300):
                changes.put(("books", f"{number:03}"), b"page")

    def check(self, database, result, directory):
        assert result == {"files": 300, "bytes": 1200}
