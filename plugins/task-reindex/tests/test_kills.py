"""A server whose background process is killed in the middle of a reindex: it goes on, and skips nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from svc_query.indexing import keys
from svc_query.testing.indexed_database import Indexed, Source

from long_runs import Extent
from svc_testing import Server, start_server

EXTENT = Extent("TASK_KILLS")
KILLS = EXTENT.scaled(1)
ROUNDS = KILLS * 10
"""At most: a task may have ended before it is killed."""

FILES = 6_000
OF_ONE_SERVER = 3
"""A background process that is killed again and again is started later and later."""

JSON = {"Content-Type": "application/json"}
PLUGINS = ("query", "tasks", "task.reindex")


def numbers(indexed: Indexed) -> dict[bytes, int]:
    """The number of the document at each path, as the rows say: another one means that it was made anew."""
    return indexed.reader.read(
        lambda storage: {key[1:]: int.from_bytes(value, "big") for key, value in storage.scan(keys.PATH)},
        minimum=0,
    )


def reindex(server: Server, **args: Any) -> str:
    answer = server.request("POST", "/system/tasks/reindex", body=json.dumps(args).encode(), headers=JSON)
    assert answer.status == 202, answer.body
    return str(answer.json()["id"])


def wait_for(server: Server, task: str, *, begun: bool) -> dict[str, Any]:
    """Waits until the task runs, or until it has ended."""
    for _ in range(6_000):
        found: dict[str, Any] = server.get(f"/system/tasks/{task}").json()
        is_over = found["status"] not in ("pending", "running")
        if is_over or (begun and found["status"] == "running"):
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


@pytest.mark.timeout(100 + 20 * KILLS)
def test_a_reindex_goes_on_behind_its_checkpoint_and_skips_nothing(database_path: Path) -> None:
    generator = random.Random(EXTENT.seed)
    killed = 0
    indexed = Indexed(database_path, Source())
    try:
        indexed.put({f"/d/{number:05}.json": {"title": f"t{number}"} for number in range(FILES)})
        state = indexed.database.state_directory
        for first_round in range(0, ROUNDS, OF_ONE_SERVER):
            if killed >= KILLS:
                break
            with start_server(database_path, "--background", "true", plugins=PLUGINS) as server:
                for number in range(first_round, first_round + OF_ONE_SERVER):
                    if killed >= KILLS:
                        break
                    first = reindex(server, path="/d")
                    assert wait_for(server, first, begun=False)["status"] == "completed"
                    before = numbers(indexed)
                    assert len(before) == FILES
                    # A flush and a checkpoint after each batch, or none at all: both must do.
                    task = reindex(server, path="/d", force=True, index_flush_ms=1 + 40_000 * (number % 2))
                    wait_for(server, task, begun=True)
                    # Its process starts within half a second, and takes as long again for its work.
                    time.sleep(0.2 + generator.random() * 0.6)
                    if server.get(f"/system/tasks/{task}").json()["status"] == "running":
                        killed += kill_background(server, state)
                    done = wait_for(server, task, begun=False)
                    assert done["status"] == "completed", done
                    assert done["result"]["files"] == FILES
                    after = numbers(indexed)
                    assert after.keys() == before.keys()
                    skipped = [key for key in before if after[key] <= max(before.values())]
                    assert skipped == [], f"seed {EXTENT.seed}, round {number}"
    finally:
        indexed.close()
    assert killed == KILLS, "in the middle, so often"
