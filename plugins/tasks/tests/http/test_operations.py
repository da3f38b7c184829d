"""The contract of operations, for those of tasks and schedules."""

from __future__ import annotations

from typing import ClassVar

from svc_tasks import operations as op
from svc_tasks.api import enqueue
from svc_tasks.models import Schedule, ScheduleChange, TaskQuery
from svc_tasks.queue import Queue, finished

from svc.errors import AlreadyExists, Conflict, NotFound
from svc.plugin import Database
from svc_testing import OperationsContract, Teller

from ..importable.strange_tasks import Together  # noqa: TID252


class TestOperations(OperationsContract):
    plugin_id = "tasks"
    beside: ClassVar = ("acme.strange",)

    def prepare(self, database: Database) -> None:
        """Leaves a task that is over."""
        queue = Queue(database)
        task = enqueue(database, Together(), {"to": 1})
        queue.change(task.id, lambda found: finished(found, "completed"), "end")

    def story(self, call: Teller) -> None:
        (over,) = call(op.list_tasks, TaskQuery(task_type="together")).tasks
        call.refused(Conflict, op.cancel_task, over.id)
        call.refused(Conflict, op.delete_task, over.id)
        task = call(op.run_task, "count", {"to": 1})
        call.refused(NotFound, op.run_task, "none")
        assert call(op.show_task, task.id).status == "pending"
        assert [one.id for one in call(op.list_tasks, TaskQuery(status="pending")).tasks] == [task.id]
        call(op.cancel_task, task.id)
        call(op.delete_task, call(op.run_task, "count", {"to": 2}).id)
        self._schedules(call)

    def _schedules(self, call: Teller) -> None:
        nightly = Schedule(id="nightly", task_type="count", schedule="0 3 * * *")
        call(op.add_schedule, nightly)
        call.refused(AlreadyExists, op.add_schedule, nightly)
        call(op.list_schedules)
        call(op.change_schedule, "nightly", ScheduleChange(enabled=False))
        assert not call(op.show_schedule, "nightly").enabled
        stored = call.stream(op.read_schedule_file)
        call.stream(op.store_schedule_file, content=stored or None)
        call(op.remove_schedule, "nightly")
