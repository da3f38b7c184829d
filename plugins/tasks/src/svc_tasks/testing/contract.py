"""What every task type must pass: its tasks can be cancelled, killed at any moment, and done twice."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from svc.errors import InvalidInput
from svc.plugin import Database
from svc_cli import extensions_of
from svc_tasks.api import TASK_TYPES, Json, Task, TaskType
from svc_tasks.queue import Queue
from svc_tasks.records import record_file
from svc_tasks.testing.runner import TaskBench
from svc_testing import ExtensionContract, used_by

__all__ = ["TaskTypeContract"]

_MOST_ATTEMPTS = 1_000
_LONGEST_LIFE = 0.6


class TaskTypeContract(ExtensionContract):
    """Tests of a task type.

    A subclass sets ``plugin_id``, gives the fixture ``extension``, and says what a task has to do.

    Attributes:
        args: arguments of the tasks that are run.
        wrong_args: arguments that must be refused.
        plugins: further plugins that are enabled in the database.
        memory: bytes of memory that a run of it may have here.
        kills: how often the process of one task is killed; ``SVC_TEST_TASKS_SCALE`` multiplies it.
        has_batches: whether a task of ``args`` takes several batches, between which it can be cancelled.
    """

    family = TASK_TYPES
    args: ClassVar[Mapping[str, Any]] = {}
    wrong_args: ClassVar[Sequence[Mapping[str, Any]]] = ()
    plugins: ClassVar[Sequence[str]] = ()
    memory: ClassVar[int] = 512 << 20
    kills: ClassVar[int] = 3
    has_batches: ClassVar[bool] = True

    # -- what a subclass says ------------------------------------------------------------------------

    def prepare(self, database: Database, directory: Path) -> None:
        """Puts into a new database what the task works on: enough for several batches.

        Args:
            database: open, with the plugins enabled.
            directory: an empty directory for this test.
        """

    def arguments(self, directory: Path) -> Mapping[str, Any]:
        """The arguments of the tasks, where they depend on the directory of the test; else ``args``."""
        del directory
        return self.args

    def check(self, database: Database, result: Json, directory: Path) -> None:
        """Asserts that the work is done: all of it, and nothing twice that must not be.

        Args:
            database: as ``prepare`` was given it.
            result: of the last task.
            directory: as ``prepare`` was given it.
        """
        pytest.fail(f"{type(self).__name__} must say what a task has done: override 'check'.")

    # -- the database --------------------------------------------------------------------------------

    @pytest.fixture
    def svc_plugins(self, driver_id: str) -> Sequence[str]:
        """The plugins of the database: the driver, the type's, what they need, and ``plugins``."""
        return used_by(*self.plugins, driver_id, self.plugin_id)

    @pytest.fixture
    def bench(
        self,
        database: Database,
        driver_id: str,
        svc_plugins: Sequence[str],
        directory: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> TaskBench:
        """A database with the plugins, prepared, and a runner for its tasks."""
        # What this process and those of the tasks may load.
        monkeypatch.setenv("SVC_PLUGINS", ",".join(svc_plugins))
        self.prepare(database, directory)
        return TaskBench(database, extensions_of(database, driver_id, TASK_TYPES))

    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        """An empty directory for what tasks read and write outside of the database."""
        made = tmp_path / "work"
        made.mkdir()
        return made

    # -- arguments -----------------------------------------------------------------------------------

    def test_its_arguments_are_json_and_stay_what_they_are(
        self, extension: TaskType, bench: TaskBench, directory: Path
    ) -> None:
        """What was checked once is what a check makes of it again: two tasks can be told to be the same."""
        configuration = bench.configuration(extension.name)
        once = extension.normalize(self.arguments(directory), configuration)
        assert msgspec.json.decode(msgspec.json.encode(once)) == once
        assert extension.normalize(once, configuration) == once

    def test_wrong_arguments_are_refused_by_name(self, extension: TaskType, bench: TaskBench) -> None:
        """A caller is told which argument is wrong; nothing else than ``InvalidInput`` is raised."""
        configuration = bench.configuration(extension.name)
        strange = {"no-such-argument": 1}
        for args in (*self.wrong_args, strange):
            with pytest.raises(InvalidInput) as refused:
                extension.normalize(args, configuration)
            assert {"field", "path"} & set(refused.value.details), args

    # -- runs ----------------------------------------------------------------------------------------

    def test_it_does_its_work_in_bounded_memory(
        self, extension: TaskType, bench: TaskBench, directory: Path
    ) -> None:
        """A task is completed, and the work is done."""
        done = self._run(bench, extension, directory, task_memory=self.memory)
        self.check(bench.database, done.result, directory)

    def test_it_may_be_done_twice(self, extension: TaskType, bench: TaskBench, directory: Path) -> None:
        """Tasks are delivered at least once: one that was done already is completed, and harms nothing."""
        self._run(bench, extension, directory)
        again = self._run(bench, extension, directory)
        self.check(bench.database, again.result, directory)

    def test_a_run_whose_end_nobody_noted_may_be_repeated(
        self, extension: TaskType, bench: TaskBench, directory: Path
    ) -> None:
        """The runner may die between the end of the work and its record: the last run then comes again."""
        task = bench.add(extension.name, self.arguments(directory))
        last: list[Task] = []
        with bench.runner() as runner:

            def is_over() -> bool:
                present = bench.task(task)
                if present.status == "running":
                    last[:] = [present]
                return present.is_finished

            bench.run_until(runner, is_over)
        assert bench.task(task).status == "completed", bench.task(task).error
        if last:
            with bench.database.transaction() as changes:
                changes.put_system(record_file(task.id), msgspec.json.encode(last[0]))
                bench.mark(changes, task)
        done = bench.finish(task)
        assert done.status == "completed", done.error
        self.check(bench.database, done.result, directory)

    def test_it_ends_between_batches_when_it_is_cancelled_and_can_be_done_later(
        self, extension: TaskType, bench: TaskBench, directory: Path
    ) -> None:
        """Well before it would be killed; what it leaves behind is no harm to the next task."""
        early = bench.add(extension.name, self.arguments(directory))
        with bench.runner(cancel_seconds=60.0) as runner:
            bench.run_until(runner, lambda: early.id in runner.processes)
            # Held back before it has begun, so that it finds out at the end of its first batch.
            os.kill(runner.processes[early.id].pid, signal.SIGSTOP)
            Queue(bench.database).cancel(early.id)
            bench.run_until(runner, lambda: runner.processes[early.id].cancelled_at is not None)
            os.kill(runner.processes[early.id].pid, signal.SIGCONT)
            bench.run_until(runner, lambda: bench.task(early).is_finished)
            late = bench.add(extension.name, self.arguments(directory))
            bench.run_until(runner, partial(bench.has_got_on, runner, late))
            if not bench.task(late).is_finished:
                Queue(bench.database).cancel(late.id)
            bench.run_until(runner, lambda: bench.task(late).is_finished)
        ended = bench.task(early)
        assert ended.status == "cancelled" or not self.has_batches, (ended.status, ended.error)
        assert bench.task(late).status in {"cancelled", "completed"}, bench.task(late).error
        done = self._run(bench, extension, directory)
        self.check(bench.database, done.result, directory)

    def test_it_goes_on_when_its_run_is_told_to_end(
        self, extension: TaskType, bench: TaskBench, directory: Path
    ) -> None:
        """As by an orderly end of the server: the next run finishes the work."""
        task = bench.add(extension.name, self.arguments(directory))
        with bench.runner() as runner:
            bench.run_until(runner, partial(bench.has_begun, runner, task))
            runner.stop()
        assert bench.task(task).attempts == 0
        done = bench.finish(task)
        assert done.status == "completed", done.error
        self.check(bench.database, done.result, directory)

    @pytest.mark.timeout(600)
    def test_it_is_finished_although_its_process_is_killed_again_and_again(
        self, extension: TaskType, bench: TaskBench, directory: Path
    ) -> None:
        """By SIGKILL at random moments, half of them with the runner: nothing is skipped."""
        chance = random.Random(int(os.environ.get("SVC_TEST_TASKS_SEED", "1")))
        kills = max(1, round(self.kills * float(os.environ.get("SVC_TEST_TASKS_SCALE", "1"))))
        args = self.arguments(directory)
        task = bench.add(extension.name, args)
        for _ in range(kills):
            if bench.task(task).is_finished:
                task = bench.add(extension.name, args)
            with bench.runner(maximum_attempts=_MOST_ATTEMPTS) as runner:
                bench.run_until(runner, partial(bench.has_begun, runner, task))
                until = time.monotonic() + chance.random() * _LONGEST_LIFE
                while time.monotonic() < until:
                    runner.tick(0.01)
                for process in runner.processes.values():
                    os.kill(process.pid, signal.SIGKILL)
                if chance.random() < 0.5:
                    bench.run_until(runner, partial(bench.is_idle, runner))
        done = bench.finish(task, maximum_attempts=_MOST_ATTEMPTS)
        assert done.status == "completed", done.error
        self.check(bench.database, done.result, directory)

    def _run(self, bench: TaskBench, extension: TaskType, directory: Path, **settings: Any) -> Task:
        task = bench.add(extension.name, self.arguments(directory))
        done = bench.finish(task, **settings)
        assert done.status == "completed", done.error
        return done
