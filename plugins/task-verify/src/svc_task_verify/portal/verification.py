"""The page and the card of verifications."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from svc_portal.api import Answer, RootPage, Shown, StateCard
from svc_tasks.models import TaskQuery
from svc_tasks.operations import list_tasks

from svc.plugin import parse_path
from svc_task_verify.operations import show_verification

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest
    from svc_tasks.models import Task

__all__ = ["VerificationCard", "VerificationPage"]

_MOST_SHOWN = 10


class VerificationPage(RootPage):
    """What the last verifications found."""

    name: ClassVar[str] = "verification"
    path: ClassVar[str] = "verification"
    title: ClassVar[str] = "Verification"
    follows: ClassVar[str | None] = "state"

    def show(self, request: PortalRequest) -> Answer:
        """The damaged paths first, each with a link."""
        damage = request.call(show_verification).damage
        paths = [] if damage is None else damage.paths
        values = {
            "damage": damage,
            "paths": [(path, request.entry_url(parse_path(path))) for path in paths],
            "start_url": request.url_if("tasks.new", type="verify"),
            "rows": [
                (
                    task,
                    request.url("tasks.one", task=task.id),
                    task.result if isinstance(task.result, dict) else {},
                )
                for task in _last(request)[:_MOST_SHOWN]
            ],
        }
        return Shown("verification.html", values)


class VerificationCard(StateCard):
    """When it was verified last, for root."""

    name: ClassVar[str] = "verification"
    title: ClassVar[str] = "Verification"
    template: ClassVar[str] = "verification_card.html"
    place: ClassVar[int] = 45

    def values(self, request: PortalRequest) -> Mapping[str, Any] | None:
        """Nothing for others."""
        if not request.identity.is_unrestricted_root:
            return None
        ended = (task for task in _last(request) if task.status == "completed")
        return {
            "damage": request.call(show_verification).damage,
            "last": next(ended, None),
            "url": request.url("verification"),
        }


def _last(request: PortalRequest) -> list[Task]:
    return [] if request.url_if("tasks") is None else request.call(list_tasks, TaskQuery("verify")).tasks
