"""Saved searches: those that the reader may see, and a preview with the button that asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from svc_portal.api import Preview, PreviewedFile

from svc.errors import AuthRequired, SvcError
from svc.plugin import parse_path
from svc_query.models import QueryBody
from svc_query.operations import query_files
from svc_query.saving import SEARCH_TYPE

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["SavedSearchPreview", "saved_searches"]

MOST_LISTED = 20
MOST_BYTES = 256 * 1024


class SavedSearchPreview(Preview):
    """The request that the file holds."""

    name: ClassVar[str] = "query.saved"
    content_types: ClassVar[tuple[str, ...]] = (SEARCH_TYPE,)
    template: ClassVar[str] = "saved.html"

    def values(self, request: PortalRequest, file: PreviewedFile) -> Mapping[str, Any] | None:
        """All of it."""
        if file.size > MOST_BYTES:
            return None
        body = file.read(file.size).decode("utf-8", "replace")
        return {"body": body, "search_url": request.url("search")}


def saved_searches(request: PortalRequest) -> list[tuple[str, str | None]]:
    """The paths of saved searches, the latest first, and where each is shown."""
    body = QueryBody(
        path="/",
        where=[{"field": "@content_type", "op": "eq", "value": SEARCH_TYPE}],
        order_by=[{"field": "@updated_at", "direction": "desc"}],  # type: ignore[list-item]
        limit=MOST_LISTED,
    )
    try:
        rows = request.call(query_files, body).results or []
    except AuthRequired:
        raise
    except SvcError:  # too many files to look at each, or none that the reader may see
        return []
    return [(row["path"], request.entry_url(parse_path(row["path"]))) for row in rows]
