"""The operation that collects garbage at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import Weight, operation, requires_root
from svc_task_gc.models import GcQuery, GcReport

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["collect_garbage"]


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
