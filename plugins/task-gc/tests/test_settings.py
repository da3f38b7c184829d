"""Settings count for every collection that was asked for after they were acknowledged."""

from __future__ import annotations

from pathlib import Path

from killed_tasks import send, wait_for
from svc_testing import start_server


def test_settings_count_for_the_next_collection(database_path: Path) -> None:
    plugins = ("versions", "tasks", "task.gc")
    with start_server(database_path, "--background", "true", plugins=plugins) as server:
        for makes_snapshot in (False, True) * 2:
            settings = {"safety_snapshot": makes_snapshot}
            send(server, "PUT", "/system/plugins/task.gc/configuration", settings)
            task = send(server, "POST", "/system/tasks/gc")["id"]
            result = wait_for(server, task, lambda _: False)["result"]
            assert (result["snapshot"] is not None) is makes_snapshot
