"""Kills the background process of a server in the middle of tasks, as often as ``SVC_TEST_CRASH_SCALE`` says.

Twice for each task type in a short run, 50 times in that of ``tox -e crash``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from long_runs import Extent
from svc_testing import Server

__all__ = ["EXTENT", "KILLS", "SECONDS", "Rounds", "send", "shows_progress"]

EXTENT = Extent("CRASH")
KILLS = 2 if EXTENT.scale <= 1 else EXTENT.scaled(50 / 12)
SECONDS = 100 + 30 * KILLS
"""The longest time that a test may take."""

_OF_ONE_SERVER = 3
"""A background process that is killed again and again is started later and later."""

_ROUNDS_FOR_A_KILL = 10
"""At most: a task may have ended before it is killed."""


Begun = Callable[[dict[str, Any]], bool]


class Rounds:
    """Rounds of a test, in each of which a task is begun and may be killed.

    Args:
        state: the state directory of the database.
        serve: starts a server with a background process.
        number: how often a task is to be killed.

    Attributes:
        killed: how often one was.
    """

    def __init__(
        self, state: Path, serve: Callable[[], AbstractContextManager[Server]], number: int = KILLS
    ) -> None:
        self._state = state
        self._serve = serve
        self._number = number
        self.chance = random.Random(EXTENT.seed)
        self.killed = 0

    def __iter__(self) -> Iterator[tuple[int, Server]]:
        """Yields numbers and servers until it was killed as often as it is to be."""
        most = self._number * _ROUNDS_FOR_A_KILL
        for first in range(0, most, _OF_ONE_SERVER):
            if self.killed >= self._number:
                return
            with self._serve() as server:
                for number in range(first, first + _OF_ONE_SERVER):
                    if self.killed < self._number:
                        yield number, server
        assert self.killed == self._number, f"in the middle, so often; seed {EXTENT.seed}"

    def kill(self, server: Server, task: str, begun: Begun, seconds: float) -> None:
        """Waits until a task is at work, and kills it within some seconds if it is so still.

        Args:
            server: the server.
            task: id of the task.
            begun: given its record, says whether it is at work: its process needs some time before that.
            seconds: the longest time until it is killed; a random part of it is waited.
        """
        found = wait_for(server, task, begun)
        time.sleep(self.chance.uniform(0, seconds))
        if found["status"] == "running":
            found = send(server, "GET", f"/system/tasks/{task}")
        if found["status"] == "running":
            _kill_background(server, self._state)
            self.killed += 1

    def end(self, server: Server, task: str) -> dict[str, Any]:
        """Waits for the end of a task, which completes; returns its record."""
        found = wait_for(server, task, lambda _: False)
        assert found["status"] == "completed", (f"seed {EXTENT.seed}", found)
        return found


def send(server: Server, method: str, path: str, value: Any = None) -> dict[str, Any]:
    """Sends a request that succeeds, and returns the answer."""
    body = None if value is None else json.dumps(value).encode()
    headers = {} if body is None else {"Content-Type": "application/json"}
    answer = server.request(method, path, body=body, headers=headers)
    assert answer.status < 300, answer.body
    found: dict[str, Any] = answer.json()
    return found


def wait_for(server: Server, task: str, begun: Begun) -> dict[str, Any]:
    """Waits until a task is at work or has ended."""
    found: dict[str, Any] = {}
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        found = send(server, "GET", f"/system/tasks/{task}")
        if found["status"] in ("completed", "failed", "cancelled") or begun(found):
            return found
        time.sleep(0.005)
    raise AssertionError(f"the task does not get on: {found}")


def shows_progress(task: dict[str, Any]) -> bool:
    """Whether a task is at work, as it says itself a quarter of a second later at most."""
    return bool(task.get("progress", {}).get("total_count"))


def _kill_background(server: Server, state: Path) -> None:
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
