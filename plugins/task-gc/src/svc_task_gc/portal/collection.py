"""The page and the card of garbage collections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from svc_portal.api import Answer, RootPage, Shown, StateCard
from svc_tasks.models import TaskQuery
from svc_tasks.operations import list_tasks

from svc.errors import InvalidInput
from svc_task_gc.models import MOST_DAYS, GcPreviewQuery
from svc_task_gc.operations import preview_collection

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["CollectionCard", "CollectionPage"]

_MOST_SHOWN = 10


class CollectionPage(RootPage):
    """Which versions a collection lets go, what the last ones did, and buttons that count or collect."""

    name: ClassVar[str] = "collection"
    path: ClassVar[str] = "collection"
    title: ClassVar[str] = "Garbage collection"
    follows: ClassVar[str | None] = "state"

    def show(self, request: PortalRequest) -> Answer:
        """For the days of the settings, or for those that the address names."""
        said = request.query.get("keep_days").strip()
        preview = request.call(preview_collection, GcPreviewQuery(_days(said)))
        values = {
            "preview": preview,
            "said": said,
            "log_url": request.url_if("log"),
            "here": request.here,
            # The page of tasks starts one by this form, and shows how far it is.
            "start_url": request.url_if("tasks.new", type="gc"),
            "rows": _last(request),
        }
        return Shown("collection.html", values)


class CollectionCard(StateCard):
    """How many versions a collection would let go, for root."""

    name: ClassVar[str] = "collection"
    title: ClassVar[str] = "Garbage collection"
    template: ClassVar[str] = "collection_card.html"
    place: ClassVar[int] = 50

    def values(self, request: PortalRequest) -> Mapping[str, Any] | None:
        """Nothing for others."""
        if not request.identity.is_unrestricted_root:
            return None
        return {"preview": request.call(preview_collection), "url": request.url("collection")}


def _days(text: str) -> float | None:
    if not text:
        return None
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days <= MOST_DAYS:
        raise InvalidInput(f"Days are a number from 0 to {MOST_DAYS}.", field="keep_days")
    return days


def _last(request: PortalRequest) -> list[dict[str, Any]]:
    """The last collections that tasks have made."""
    if request.url_if("tasks") is None:
        return []
    return [
        {
            "task": task,
            "url": request.url("tasks.one", task=task.id),
            "report": task.result if isinstance(task.result, dict) else {},
        }
        for task in request.call(list_tasks, TaskQuery("gc")).tasks[:_MOST_SHOWN]
    ]
