"""A directory as a user would see it, for root: to look at, and nothing can be done there."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from svc_portal.api import Answer, RootPage, Shown

from svc.plugin import Path, format_path
from svc_users.models import SeeingQuery
from svc_users.operations import list_as_user

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["SeeAsPage"]

_ROWS = 100


class SeeAsPage(RootPage):
    """What a user sees of a directory. It has no forms: whoever reads it stays root."""

    name: ClassVar[str] = "users.see"
    path: ClassVar[str] = "people/{user}/sees/{path:path}"
    title: ClassVar[str] = "As a user sees it"
    follows: ClassVar[str | None] = "users"

    def show(self, request: PortalRequest) -> Answer:
        """A part of the directory."""
        user, path = request.fields["user"], request.fields["path"]
        query = SeeingQuery(
            path=format_path(path), user=user, limit=_ROWS, after=request.query.get("after") or None
        )
        seen = request.call(list_as_user, query)

        def url(path: Path) -> str:
            return request.url("users.see", user=user, path=path)

        values = {
            "seen": seen,
            "crumbs": [
                (name, url(path[:length])) for length, name in enumerate((f"{seen.username} sees", *path))
            ],
            "rows": [
                (one, url((*path, one.name)) if one.kind == "directory" else None) for one in seen.entries
            ],
            "next_url": request.url("users.see", {"after": seen.next_cursor}, user=user, path=path)
            if seen.has_more
            else None,
            "first_url": request.here if query.after else None,
            "why_url": request.url("users.access", {"user": seen.username}, path=path),
            "entry_url": request.entry_url(path),
            "user_url": request.url("users.one", user=seen.user_id),
        }
        return Shown("seeing.html", values, title=f"{format_path(path)} as {seen.username} sees it")
