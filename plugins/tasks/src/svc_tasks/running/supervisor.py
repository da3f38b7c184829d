"""Decides what runs, keeps an eye on it, and writes down what became of it. For one thread.

The records are the truth: everything here can be lost at any moment, and the next supervisor goes on from
them.
"""

from __future__ import annotations

import logging
import os
import select
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from svc.errors import NotFound
from svc.plugin import Database, Extension, Hash, Secret
from svc_tasks.api import Task, TaskType
from svc_tasks.configuration import TasksConfiguration
from svc_tasks.queue import Queue, begin_message, finished
from svc_tasks.records import TASKS, now_ms
from svc_tasks.running.choosing import next_task
from svc_tasks.running.process import TaskProcess
from svc_tasks.running.protocol import Cancelled, Completed, Failed, Order
from svc_tasks.state import RunnerState, runner_file

__all__ = ["Supervisor"]

STOP_SECONDS = 0.6
"""How long tasks have to end between two batches when the background process ends."""
_START_SECONDS = 60.0
"""For imports and for opening the database, also on a machine that has much else to do."""
_RETRY_SECONDS = 0.5
_LONGEST_RETRY_SECONDS = 60.0

Types = Mapping[str, Extension[TaskType]]

logger = logging.getLogger("svc.plugin.tasks")


class Supervisor:
    """Runs tasks while it holds the lock of the runner; see ``RunnerLock``."""

    def __init__(
        self,
        database: Database,
        types: Callable[[], Types],
        configuration: TasksConfiguration,
        *,
        only: str | None = None,
    ) -> None:
        self._database = database
        self._types = types
        self._settings = configuration
        self._only = only
        self._queue = Queue(database)
        self._running: dict[str, TaskProcess] = {}
        self._file = runner_file(database.state_directory)
        self._seen: Hash | None = None
        self._active: list[Task] = []
        self._turns: dict[str, int] = {}
        self._turn = 0
        self._resting: dict[str, float] = {}

    @property
    def processes(self) -> Mapping[str, TaskProcess]:
        """What runs, by the id of the task."""
        return self._running

    def recover(self) -> None:
        """Lets what a dead runner has left running wait again. Called once, before the first ``tick``."""
        for task in self._queue.active():
            if task.status == "running":
                self._queue.change(task.id, self._after_death("the process that ran it ended"), "resume task")

    def tick(self, seconds: float) -> None:
        """Does what there is to do now; first waits for a sign of a task, so long at most."""
        self._listen(seconds)
        for process in list(self._running.values()):
            if process.take():
                self._finish(process)
        self._look_at_records()
        self._enforce()
        self._start()
        progress = tuple(process.progress for process in self._running.values())
        self._file.beat(RunnerState(os.getpid(), progress))

    def stop(self) -> None:
        """Ends all tasks so that they can go on later. Blocks for about a second at most."""
        for process in self._running.values():
            process.tell_to_stop()
        deadline = time.monotonic() + STOP_SECONDS
        while self._running and time.monotonic() < deadline:
            self._listen(0.05)
            for process in list(self._running.values()):
                if process.take():
                    self._finish(process)
        for process in list(self._running.values()):
            process.end()
            self._finish(process)
        self._file.remove()

    def abandon(self) -> None:
        """Kills all tasks and writes nothing; the next ``recover`` puts them back."""
        for process in self._running.values():
            process.end()
        self._running.clear()
        self._file.remove()

    # -- what runs -----------------------------------------------------------------------------------

    def _listen(self, seconds: float) -> None:
        poll = select.poll()
        for process in self._running.values():
            for descriptor in process.descriptors:
                poll.register(descriptor, select.POLLIN)
        if not self._running:
            time.sleep(seconds)
            return
        began = time.monotonic()
        ready = poll.poll(seconds * 1000)
        if ready and all(events & select.POLLHUP and not events & select.POLLIN for _, events in ready):
            # A pipe that was closed is always ready.
            time.sleep(max(0.0, min(seconds, 0.02) - (time.monotonic() - began)))

    def _finish(self, process: TaskProcess) -> None:
        process.end()
        outcome, task = process.outcome, process.task
        if isinstance(outcome, Failed) and outcome.trace:
            fields = {"task": task.id, "type": task.task_type, "trace": outcome.trace}
            logger.warning("task failed", extra={"fields": fields})
        try:
            self._queue.change(task.id, self._outcome_of(process), f"end of task {task.id}")
        except NotFound:
            logger.warning("task is gone", extra={"fields": {"task": task.id}})
        del self._running[task.id]
        self._seen = None
        self._queue.prune()

    def _outcome_of(self, process: TaskProcess) -> Callable[[Task], Task | None]:
        outcome, started_at = process.outcome, process.task.started_at

        def decide(task: Task) -> Task | None:
            if task.status != "running" or task.started_at != started_at:
                return None
            if isinstance(outcome, Completed):
                return finished(task, "completed", result=outcome.result)
            if isinstance(outcome, Failed):
                return finished(task, "failed", error=outcome.error)
            if isinstance(outcome, Cancelled) or process.cancelled_at is not None:
                return finished(task, "cancelled")
            if outcome is not None or process.stopped_at is not None:
                return msgspec.structs.replace(task, status="pending")
            return self._after_death(f"its process {process.words_of_end()}")(task)

        return decide

    def _after_death(self, words: str) -> Callable[[Task], Task | None]:
        """What becomes of a task whose process died without a last word."""

        def decide(task: Task) -> Task | None:
            if task.status != "running":
                return None
            if task.cancel_requested_at is not None:
                return finished(task, "cancelled")
            attempts = task.attempts + 1
            if attempts >= self._settings.maximum_attempts:
                times = "once" if attempts == 1 else f"{attempts} times in a row"
                return finished(task, "failed", error=f"It did not get on, {times}: {words}.")
            logger.warning(
                "task died", extra={"fields": {"task": task.id, "attempts": attempts, "reason": words}}
            )
            pause = min(_LONGEST_RETRY_SECONDS, _RETRY_SECONDS * 2 ** min(attempts - 1, 10))
            self._resting[task.id] = time.monotonic() + pause
            return msgspec.structs.replace(task, status="pending", attempts=attempts)

        return decide

    def _enforce(self) -> None:
        """Kills what does not end although it was cancelled, and what gives no sign of life."""
        now = time.monotonic()
        for process in list(self._running.values()):
            told_at = process.cancelled_at or process.stopped_at
            if told_at is not None and now - told_at > self._settings.cancel_seconds:
                process.end()
                self._finish(process)
            elif now - process.said_at > self._patience_with(process):
                process.end()
                process.outcome = Failed(
                    f"It gave no sign of life for {self._settings.stall_seconds:g} seconds and was killed."
                )
                self._finish(process)

    def _patience_with(self, process: TaskProcess) -> float:
        seconds = self._settings.stall_seconds
        return seconds if process.has_spoken else max(seconds, _START_SECONDS)

    def _give_turn(self, waiting: Task) -> None:
        """Lets the task end its run that runs longest and can go on later: another type waits."""
        if any(process.stopped_at is not None for process in self._running.values()):
            return
        now = time.monotonic()
        candidates = [
            process
            for process in self._running.values()
            if process.has_saved
            and process.cancelled_at is None
            and process.task.task_type != waiting.task_type
            and now - process.began_at > self._settings.turn_seconds
        ]
        if candidates:
            min(candidates, key=lambda process: process.began_at).tell_to_stop()

    # -- what waits ----------------------------------------------------------------------------------

    def _look_at_records(self) -> None:
        """Reads the queue when something of it has changed, and tells tasks that they were cancelled."""
        entry = self._database.system().get(TASKS)
        seen = None if entry is None else entry.hash
        if seen == self._seen and seen is not None:
            return
        self._active = self._queue.active()
        self._seen = seen
        by_id = {task.id: task for task in self._active}
        for task_id, process in self._running.items():
            task = by_id.get(task_id)
            if task is None or task.status != "running" or task.started_at != process.task.started_at:
                process.kill()
            elif task.cancel_requested_at is not None and process.cancelled_at is None:
                process.tell_cancelled()

    def _start(self) -> None:
        waiting = [task for task in self._active if task.status == "pending" and self._is_ours(task)]
        if not waiting:
            return
        now = time.monotonic()
        self._resting = {task_id: until for task_id, until in self._resting.items() if until > now}
        types = {name: one for name, one in self._types().items() if one.context.is_current()}
        exclusive = {name: one.value.exclusive for name, one in types.items()}
        while True:
            running = [process.task for process in self._running.values()]
            task = next_task(waiting, running, exclusive, self._turns, self._resting)
            if task is None:
                return
            if len(running) >= self._settings.tasks_at_once:
                self._give_turn(task)
                return
            waiting.remove(task)
            self._begin(task, types[task.task_type])

    def _is_ours(self, task: Task) -> bool:
        return self._only is None or task.id == self._only

    def _begin(self, task: Task, extension: Extension[TaskType]) -> None:
        self._turn += 1
        self._turns[task.task_type] = self._turn

        def start(present: Task) -> Task | None:
            if present.status != "pending":
                return None
            return msgspec.structs.replace(present, status="running", started_at=now_ms())

        try:
            begun = self._queue.change(task.id, start, begin_message(task.id))
        except NotFound:
            return
        self._seen = None
        if begun.status != "running" or begun.started_at == task.started_at:
            return
        order = Order(
            parent=os.getpid(),
            location=str(self._database.location),
            plugin_id=extension.context.plugin_id,
            task_type=begun.task_type,
            task_id=begun.id,
            started_at=begun.started_at or 0,
            configuration=_revealed(extension.context.configuration),
            memory=self._settings.task_memory,
            log_level=logging.getLogger().getEffectiveLevel(),
            max_tree_entries=self._database.max_tree_entries,
        )
        try:
            self._running[begun.id] = TaskProcess(begun, order)
        except OSError as error:
            words = f"no process could be started: {error.strerror}"
            self._queue.change(begun.id, self._after_death(words), "no process")


def _revealed(configuration: Any) -> Any:
    """Settings as built-in values, secrets as they are: they go through a pipe of our own."""
    if configuration is None:
        return None
    return msgspec.to_builtins(configuration, enc_hook=_secret_text)


def _secret_text(value: Any) -> Any:
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"The type {type(value).__name__} is not one that settings can have")
