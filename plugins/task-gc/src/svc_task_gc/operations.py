"""The operation that collects garbage at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import Weight, operation, requires_root
from svc_task_gc.models import GcPreview, GcPreviewQuery, GcQuery, GcReport

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["collect_garbage", "preview_collection"]


@operation("GET", "/system/gc", requires_root, weight=Weight.DEAR)
def preview_collection(call: Call, query: GcPreviewQuery = GcPreviewQuery()) -> GcPreview:
    """Tells which versions a collection would let go; costs little, and changes nothing."""
    from svc.plugin import unkept_versions
    from svc_task_gc.configuration import GcConfiguration

    settings = call.configuration or GcConfiguration()
    keep_days = settings.keep_days if query.keep_days is None else query.keep_days
    versions, since = unkept_versions(call.database, keep_days)
    first = max(1, call.database.horizon()) if versions else None
    last = None if first is None else first + versions - 1
    return GcPreview(versions, since, keep_days, first, last)


# A responder, because it refuses a body and parameters that it does not know.
@operation(
    "POST",
    "/system/gc",
    requires_root,
    weight=Weight.DEAR,
    responder="svc_task_gc.responders:collect_garbage",
)
def collect_garbage(call: Call, query: GcQuery = GcQuery()) -> GcReport:
    """Collects garbage in a process of its own, and answers when that has ended."""
