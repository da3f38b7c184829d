"""The background process of a server is killed while it collects: the task begins anew, nothing is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from long_runs import Extent
from svc.database import verify
from svc.plugin import Database
from svc_testing import Server, start_server

EXTENT = Extent("TASK_KILLS")
KILLS = EXTENT.scaled(2)
OF_ONE_SERVER = 3
"""A background process that is killed again and again is started later and later."""

PLUGINS = ("versions", "tasks", "task.gc")
SETTINGS = {"safety_snapshot": False}


def wait_for(server: Server, task: str, *statuses: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(6_000):
        found = server.get(f"/system/tasks/{task}").json()
        if found["status"] in statuses:
            return found
        time.sleep(0.01)
    raise AssertionError(f"the task does not get on: {found}")


def kill_background(server: Server, state: Path) -> None:
    """Kills the background process of a server, once there is a living one."""
    for _ in range(1_000):
        try:
            pid = int(json.loads((state / "background.json").read_text())["pid"])
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            parent = 0
        if parent == server.process.pid:
            os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.02)
    raise AssertionError("there is no background process")


@pytest.mark.timeout(100 + 20 * KILLS)
def test_collections_that_are_killed_are_done_again_and_lose_nothing(database_path: Path) -> None:
    chance = random.Random(EXTENT.seed)
    kept = chance.randbytes(2_000_000)
    with Database(database_path) as database:
        with database.transaction() as transaction:
            transaction.put(("kept",), database.store_bytes(kept))
        state = database.state_directory
        for begin in range(0, KILLS, OF_ONE_SERVER):
            with start_server(database_path, "--background", "true", plugins=PLUGINS) as server:
                body = json.dumps(SETTINGS).encode()
                headers = {"Content-Type": "application/json"}
                url = "/system/plugins/task.gc/configuration"
                assert server.request("PUT", url, body=body, headers=headers).status == 200
                for number in range(begin, min(KILLS, begin + OF_ONE_SERVER)):
                    present = chance.randbytes(3_000_000)
                    with database.transaction() as transaction:
                        for part in range(20):
                            content = database.store_bytes(present[part * 150_000 :][:150_000])
                            transaction.put(("round", str(part)), content)
                    del transaction, content
                    made = server.request("POST", "/system/tasks/gc").json()
                    wait_for(server, made["id"], "running", "completed")
                    time.sleep(chance.random() * 0.6)
                    kill_background(server, state)
                    ended = wait_for(server, made["id"], "completed", "failed")
                    assert ended["status"] == "completed", (number, ended)
                    version = database.at()
                    entry = version.get(("kept",))
                    assert entry is not None
                    assert version.read_all(entry) == kept
                    found = [version.get(("round", str(part))) for part in range(20)]
                    assert b"".join(version.read_all(one) for one in found if one) == present
        assert verify(database).damaged == []
    assert path_allocates_little(database_path)


def path_allocates_little(path: Path) -> bool:
    """Whether the file takes about what is needed: two of the three states of five megabytes at most."""
    return path.stat().st_blocks * 512 < 12_000_000
