"""The page of schedules: when each runs next, and forms to change, disable and remove them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import msgspec
from svc_portal.api import Act, Answer, Message, RootPage, Shown, Undo

from svc.errors import InvalidInput
from svc_tasks.models import Schedule, ScheduleChange
from svc_tasks.operations import add_schedule, change_schedule, list_schedules, remove_schedule
from svc_tasks.portal.arguments import startable_types

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["SchedulesPage"]


class SchedulesPage(RootPage):
    """The schedules, in the order of their file."""

    name: ClassVar[str] = "tasks.schedules"
    path: ClassVar[str] = "schedules"
    title: ClassVar[str] = "Schedules"
    follows: ClassVar[str | None] = "tasks"

    def show(self, request: PortalRequest) -> Answer:
        """Each with its next runs, and the task that it started last."""
        rows = [
            {
                "schedule": one,
                "arguments": msgspec.json.encode(one.args).decode() if one.args else "",
                "last_url": request.url("tasks.one", task=one.last_task_id) if one.last_task_id else None,
            }
            for one in request.call(list_schedules).schedules
        ]
        values = {
            "rows": rows,
            "here": request.url("tasks.schedules"),
            "tasks_url": request.url("tasks"),
            "types": [(name, request.url("tasks.new", type=name)) for name in startable_types(request)],
        }
        return Shown("schedules.html", values)

    def acts(self) -> Mapping[str, Act]:
        """Changes one."""
        return {
            "change": _change,
            "enable": lambda request: _enabled(request, is_on=True),
            "disable": lambda request: _enabled(request, is_on=False),
            "remove": _remove,
            "add": _add,
        }


def _change(request: PortalRequest) -> Message:
    changed = request.call(
        change_schedule,
        request.form.require("id"),
        ScheduleChange(schedule=request.form.require("schedule")),
    )
    return Message(f"The schedule {changed.id} is {changed.schedule} now.")


def _enabled(request: PortalRequest, *, is_on: bool) -> Message:
    changed = request.call(change_schedule, request.form.require("id"), ScheduleChange(enabled=is_on))
    undo = {"action": "disable" if is_on else "enable", "id": changed.id}
    text = f"The schedule {changed.id} is {'enabled' if is_on else 'disabled'}."
    return Message(text, Undo(request.url("tasks.schedules"), undo))


def _remove(request: PortalRequest) -> Message:
    gone = request.call(remove_schedule, request.form.require("id"))
    before = Schedule(
        id=gone.id,
        task_type=gone.task_type,
        schedule=gone.schedule,
        args=gone.args,
        enabled=gone.enabled,
        runs_on=gone.runs_on,
    )
    undo = {"action": "add", "of": msgspec.json.encode(before).decode()}
    return Message(f"Removed the schedule {gone.id}.", Undo(request.url("tasks.schedules"), undo))


def _add(request: PortalRequest) -> Message:
    """Adds one that was removed."""
    try:
        schedule = msgspec.json.decode(request.form.require("of"), type=Schedule)
    except msgspec.DecodeError:
        raise InvalidInput("This is no schedule.", field="of") from None
    return Message(f"Added the schedule {request.call(add_schedule, schedule).id}.")
