"""The card on the page of the state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from svc_portal.api import StateCard

from svc_tasks.operations import list_schedules, list_tasks
from svc_tasks.portal.tasks import task_values

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["TasksCard"]

_MOST = 3


class TasksCard(StateCard):
    """What runs, what waits, what has failed last, and what a schedule starts next."""

    name: ClassVar[str] = "tasks"
    title: ClassVar[str] = "Tasks"
    template: ClassVar[str] = "card.html"
    place: ClassVar[int] = 40

    def values(self, request: PortalRequest) -> Mapping[str, Any] | None:
        """Nothing for others than root."""
        if not request.identity.is_unrestricted_root:
            return None
        tasks = request.call(list_tasks).tasks
        schedules = [one for one in request.call(list_schedules).schedules if one.enabled and one.next_runs]
        return {
            "counts": Counter(one.status for one in tasks),
            "shown": [task_values(request, one) for one in tasks if one.status in ("running", "failed")][
                :_MOST
            ],
            "next": min(schedules, key=lambda one: one.next_runs[0], default=None),
            "url": request.url("tasks"),
        }
