"""What the runner of tasks tells every process on this machine: a small file in the state directory.

Progress is nothing that must last, so it is no commit: the file is replaced a few times a second while tasks
run, and its own time says when the runner was last alive.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from svc_tasks.api import TaskProgress

__all__ = ["RunnerState", "StateFile", "read_progress", "read_state"]

_DIRECTORY = "tasks"
_NAME = "running.json"
_WRITE_SECONDS = 0.25
_BEAT_SECONDS = 2.0


class RunnerState(msgspec.Struct, frozen=True):
    """What the runner said last: its process, how far the running tasks are, and when it was last alive."""

    pid: int
    tasks: tuple[TaskProgress, ...] = ()
    beat_ms: int = 0


class StateFile:
    """The file, as the runner writes it. What can't be written waits."""

    def __init__(self, state_directory: Path) -> None:
        self._path = state_directory / _DIRECTORY / _NAME
        self._written: tuple[TaskProgress, ...] | None = None
        self._after = 0.0

    def beat(self, tasks: Iterable[TaskProgress]) -> None:
        """Shows that the runner is alive, and how far its tasks are; at most four times a second."""
        now = time.monotonic()
        told = tuple(tasks)
        if now < self._after or (told == self._written and now < self._after + _BEAT_SECONDS):
            return
        with contextlib.suppress(OSError):
            if told != self._written or not self._path.exists():
                self._replace(msgspec.json.encode(RunnerState(os.getpid(), told)))
                self._written = told
            os.utime(self._path)
        self._after = now + _WRITE_SECONDS

    def remove(self) -> None:
        """Takes the file away, at an orderly end."""
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _replace(self, content: bytes) -> None:
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        unnamed = self._path.with_suffix(".new")
        try:
            with open(unnamed, "wb", opener=_private) as file:
                file.write(content)
            os.replace(unnamed, self._path)
        except OSError:
            with contextlib.suppress(OSError):
                unnamed.unlink()
            raise


def read_state(state_directory: Path) -> RunnerState | None:
    """Returns what the runner said last; None when there is nothing to read."""
    try:
        with open(state_directory / _DIRECTORY / _NAME, "rb") as file:
            beat_ms = os.fstat(file.fileno()).st_mtime_ns // 1_000_000
            state = msgspec.json.decode(file.read(), type=RunnerState)
    except (OSError, msgspec.DecodeError):
        return None
    return msgspec.structs.replace(state, beat_ms=beat_ms)


def read_progress(state_directory: Path) -> dict[str, TaskProgress]:
    """Returns how far the running tasks are, by id, as the runner last said."""
    state = read_state(state_directory)
    return {} if state is None else {one.task_id: one for one in state.tasks}


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
