"""What a merge would do, before it does it; conflicts with their three sides, and who is to win."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from svc_portal.api import Answer, PortalPage, Shown

from svc.errors import Conflict
from svc_versions.operations import merge_versions
from svc_versions.portal.acting import act_on_merge, merge_body
from svc_versions.portal.conflicts import conflict_values

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["MergePage"]


class MergePage(PortalPage):
    """The preview of a merge, with the form that does it."""

    name: ClassVar[str] = "merge"
    path: ClassVar[str] = "versions/merge"
    title: ClassVar[str] = "Merge"
    follows: ClassVar[str | None] = "versions"

    def is_for(self, request: PortalRequest) -> bool:
        """For those who have an account."""
        return request.identity.user_id is not None

    def show(self, request: PortalRequest) -> Answer:
        """Tries the merge and changes nothing; without a source it asks for one."""
        source = request.query.get("from")
        values: dict[str, Any] = {
            "here": request.url("merge"),
            "source": source,
            "into": request.query.get("into") or "HEAD",
            "is_root": request.identity.is_unrestricted_root,
            "done": None,
            "conflicts": None,
        }
        if source:
            try:
                values["done"] = request.call(merge_versions, merge_body(request.query.get, dry_run=True))
            except Conflict as conflict:
                if "conflicts" not in conflict.details:
                    raise
                values |= conflict_values(request, conflict.details)
        return Shown("merge.html", values, title=f"Merge {source}" if source else "Merge")

    def act(self, request: PortalRequest) -> Answer:
        """Does it."""
        return act_on_merge(request)
