"""The task ``verify``: reads the log again at a bounded rate, and names what is damaged."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from svc_tasks.api import TaskContext, TaskType

from svc_maintenance.verification import ScrubStep, name_damage, scrub
from svc_task_verify.configuration import BytesPerSecond, VerifyConfiguration
from svc_task_verify.record import Found, write_found

if TYPE_CHECKING:
    from svc_maintenance.verification import VerifyReport

__all__ = ["VerifyTask"]

_LARGEST_STEP = 8 << 20
_STEPS_A_SECOND = 4
_CHECKPOINT_SECONDS = 30.0
_MOST_KEPT = 200
_MOST_SHOWN = 100
_SLICE_SECONDS = 0.25
_LEAST_REST = 0.02
_CALLS_BETWEEN_CHECKS = 1024


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of a task.

    Attributes:
        bytes_per_second: how much is read in a second; None leaves it to the settings.
    """

    bytes_per_second: BytesPerSecond | None = None


class VerifyTask(TaskType):
    """Checks every record, and then that every version has all that it needs."""

    name = "verify"
    arguments = Arguments

    def run(self, context: TaskContext) -> Mapping[str, Any]:
        """Checks what no earlier run of the task has checked; see ``TaskType``."""
        configuration = context.configuration or VerifyConfiguration()
        rate = context.args.get("bytes_per_second") or configuration.bytes_per_second
        found = _check_log(context, rate)
        head = context.database.head()
        context.begin(head.sequence, "walking the versions")
        walked = 0

        def told(_phase: str, done: int, _total: int) -> None:
            nonlocal walked
            context.advance(max(0, done - walked))
            walked = done

        pace = _Pace(context, rate)
        report = name_damage(context.database, found.damaged, found.regions, told, pace=pace)
        write_found(context.database, _found(found, report), context.actor)
        for damage in report.damaged[:_MOST_SHOWN]:
            context.logger.error("damaged: %s %s", damage.path or "", damage.message)
        return {
            "bytes": found.end,
            "commits": report.commits,
            "objects": report.objects,
            "damaged": len(report.damaged),
            "damaged_paths": _paths(report),
            "damaged_commits": report.damaged_commits[:_MOST_SHOWN],
            "lost": len(report.lost),
        }


def _check_log(context: TaskContext, rate: int) -> ScrubStep:
    """Checks the log from where the last run stopped; returns all that is damaged."""
    database = context.database
    found = ScrubStep(0, 0, database.head().commit_end, [], [])
    if context.checkpoint is not None:
        found = msgspec.convert(context.checkpoint, ScrubStep)
    context.begin(database.head().commit_end, "reading the log", done=found.end)
    step_bytes = min(max(rate // _STEPS_A_SECOND, 64 << 10), _LARGEST_STEP)
    saved = time.monotonic()
    while found.end < found.limit or not found.end:
        began = time.monotonic()
        step = scrub(database, found.end, step_bytes)
        size = max(0, step.end - found.end)
        is_new = bool(step.damaged or step.regions)
        found = _joined(found, step)
        context.advance(size)
        if is_new or time.monotonic() - saved >= _CHECKPOINT_SECONDS:
            context.save_checkpoint(msgspec.to_builtins(found))
            saved = time.monotonic()
        if not size:
            break
        _rest(context, began + size / rate)
    return found


def _joined(found: ScrubStep, step: ScrubStep) -> ScrubStep:
    """Adds what a step found; of very much damage the first is kept."""
    known = {one.offset for one in found.damaged}
    damaged = [*found.damaged, *(one for one in step.damaged if one.offset not in known)]
    regions = list(dict.fromkeys((begin, end) for begin, end in (*found.regions, *step.regions)))
    return ScrubStep(0, max(found.end, step.end), step.limit, damaged[:_MOST_KEPT], regions[:_MOST_KEPT])


def _rest(context: TaskContext, until: float) -> None:
    """Waits so that no more is read than is allowed, and ends the run when it shall end."""
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, _SLICE_SECONDS))
        context.check()


class _Pace:
    """Waits so that no more is read than is allowed; ends the run when it shall end."""

    def __init__(self, context: TaskContext, rate: int) -> None:
        self._context = context
        self._rate = rate
        self._due = time.monotonic()
        self._calls = 0

    def __call__(self, size: int) -> None:
        now = time.monotonic()
        # What was not read in time is not made up for.
        self._due = max(self._due, now - _SLICE_SECONDS) + size / self._rate
        self._calls += 1
        if self._due - now > _LEAST_REST:
            _rest(self._context, self._due)
        elif self._calls % _CALLS_BETWEEN_CHECKS == 0:
            self._context.check()


def _found(found: ScrubStep, report: VerifyReport) -> Found | None:
    if report.ok:
        return None
    return Found(
        time.time_ns() // 1_000_000,
        len(report.damaged),
        _paths(report),
        report.damaged_objects[:_MOST_SHOWN],
        found.regions[:_MOST_SHOWN],
        report.damaged_commits[:_MOST_SHOWN],
    )


def _paths(report: VerifyReport) -> list[str]:
    return list(dict.fromkeys(one.path for one in report.damaged if one.path is not None))[:_MOST_SHOWN]
