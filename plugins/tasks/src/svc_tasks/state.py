"""What the runner of tasks tells every process on this machine, in the state directory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from svc.plugin import StateFile
from svc_tasks.api import TaskProgress

__all__ = ["RunnerState", "runner_file"]


class RunnerState(msgspec.Struct, frozen=True):
    """What the runner said last: its process, and how far the running tasks are."""

    pid: int
    tasks: tuple[TaskProgress, ...] = ()


def runner_file(state_directory: Path) -> StateFile[RunnerState]:
    """The file of the runner, which the runner alone writes."""
    return StateFile(state_directory / "tasks" / "running.json", RunnerState)
