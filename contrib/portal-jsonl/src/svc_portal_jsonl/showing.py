"""The preview and the page. Both get the bytes of a file with the rights of the reader alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from svc_portal.api import Answer, PortalPage, Preview, PreviewedFile, Shown

from svc.errors import NotFound
from svc_files.operations import read_path
from svc_portal_jsonl.rows import table_of

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["LinesPage", "LinesPreview"]

CONTENT_TYPE = "application/jsonl"
MOST_BYTES = 1024 * 1024
MOST_ROWS = 1_000
MOST_PREVIEWED_BYTES = 64 * 1024
MOST_PREVIEWED_ROWS = 20


class LinesPreview(Preview):
    """The first rows."""

    name: ClassVar[str] = "portal.jsonl"
    content_types: ClassVar[tuple[str, ...]] = (CONTENT_TYPE,)
    template: ClassVar[str] = "preview.html"

    def values(self, request: PortalRequest, file: PreviewedFile) -> Mapping[str, Any] | None:
        """A bounded part of the file, and the way to more of it."""
        content = file.read(MOST_PREVIEWED_BYTES)
        table = table_of(content, MOST_PREVIEWED_ROWS, is_whole=file.size <= len(content))
        return {"table": table, "url": request.url("portal.jsonl", path=file.path)}


class LinesPage(PortalPage):
    """As many rows as a page can hold."""

    name: ClassVar[str] = "portal.jsonl"
    path: ClassVar[str] = "jsonl/{path:path}"
    title: ClassVar[str] = "Rows"
    follows: ClassVar[str | None] = "files"

    def show(self, request: PortalRequest) -> Answer:
        """Whoever may not read the file is told what the operation tells everybody."""
        path = request.fields["path"]
        # A range answers any file, and refuses the empty one; a directory is answered as JSON.
        answer = request.send(read_path, path, fields={"Range": f"bytes=0-{MOST_BYTES - 1}"})
        content = answer.read()
        if answer.headers.get("content-type", "").partition(";")[0] != CONTENT_TYPE:
            raise NotFound("There is no file of JSON Lines at this path.")
        size = int(answer.headers.get("content-range", f"/{len(content)}").rpartition("/")[2])
        values = {
            "table": table_of(content, MOST_ROWS, is_whole=size <= len(content)),
            "file_url": request.entry_url(path),
        }
        return Shown("lines.html", values, title=f"Rows of {path[-1]}")
