"""A server whose background process is killed while it writes a backup: it begins anew, and none is half."""

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
from svc.plugin import Database
from svc_backup.format import IncomingFile, check_incoming
from svc_testing import Server, start_server

EXTENT = Extent("TASK_KILLS")
KILLS = EXTENT.scaled(1)
ROUNDS = KILLS * 10
"""At most: a task may have ended before it is killed."""

OF_ONE_SERVER = 3
"""A background process that is killed again and again is started later and later."""

JSON = {"Content-Type": "application/json"}
PLUGINS = ("backup", "tasks", "task.backup")


def status(server: Server, task: str) -> dict[str, Any]:
    found: dict[str, Any] = server.get(f"/system/tasks/{task}").json()
    return found


def wait_for(server: Server, task: str, *statuses: str) -> dict[str, Any]:
    for _ in range(6_000):
        found = status(server, task)
        if found["status"] in statuses:
            return found
        time.sleep(0.01)
    raise AssertionError(f"the task does not get on: {found}")


def kill_background(server: Server, state: Path) -> bool:
    """Kills the background process of a server, once there is a living one; returns whether there was."""
    for _ in range(1_000):
        try:
            pid = int(json.loads((state / "background.json").read_text())["pid"])
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            parent = 0
        if parent == server.process.pid:
            os.kill(pid, signal.SIGKILL)
            return True
        time.sleep(0.02)
    return False


def require_whole(path: Path, root: str) -> None:
    with path.open("rb") as stream, IncomingFile(stream.fileno(), path.name) as file:
        check_incoming(file)
        assert file.root.hex() == root


@pytest.mark.timeout(100 + 20 * KILLS)
def test_a_backup_is_whole_or_not_there_and_the_kept_ones_stay(database_path: Path) -> None:
    generator = random.Random(EXTENT.seed)
    killed = 0
    written: dict[str, str] = {}
    directory = database_path.parent / "backups"
    with Database(database_path) as database:
        with database.transaction() as transaction:
            for number in range(10):
                transaction.put((f"large{number}",), database.store_bytes(os.urandom(3_000_000)))
        state = database.state_directory
        for first_round in range(0, ROUNDS, OF_ONE_SERVER):
            if killed >= KILLS:
                break
            with start_server(database_path, "--background", "true", plugins=PLUGINS) as server:
                for number in range(first_round, first_round + OF_ONE_SERVER):
                    if killed >= KILLS:
                        break
                    with database.transaction() as transaction:
                        transaction.put(("round",), str(number).encode())
                    body = json.dumps({"retention_count": 3}).encode()
                    task = server.request("POST", "/system/tasks/backup", body=body, headers=JSON).json()[
                        "id"
                    ]
                    wait_for(server, task, "running", "completed")
                    time.sleep(generator.random() * 0.5)
                    if status(server, task)["status"] == "running":
                        killed += kill_background(server, state)
                    # What is there is whole, at any time, and the old ones stay until the new one is there.
                    present = {path.name for path in directory.glob("*.svcdb")}
                    assert set(list(written)[-3:]) - present <= set(list(written)[:-2])
                    done = wait_for(server, task, "completed", "failed")
                    assert done["status"] == "completed", done
                    assert done["result"]["version"] == database.head().root.hex()
                    written[done["result"]["file"]] = done["result"]["version"]
                    kept = list(written)[-3:]
                    assert sorted(os.listdir(directory)) == kept, f"seed {EXTENT.seed}, round {number}"
                    for name in kept:
                        require_whole(directory / name, written[name])
    assert killed == KILLS, "in the middle, so often"
