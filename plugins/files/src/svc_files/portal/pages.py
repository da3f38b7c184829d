"""The page of a directory, and that of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import msgspec
from svc_portal.api import Act, Answer, Message, PortalEntry, PortalPage, PreviewedFile, Redirect, Shown

from svc.errors import Forbidden, NotFound
from svc.plugin import EntryKind, Operation, Path, format_path, parse_path, pause
from svc_files.items import ENTRY_TYPE_NAMES
from svc_files.models import EntryInfo, FileQuery, Listing
from svc_files.operations import read_path
from svc_files.portal.acting import acts

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["FilesPage", "first_bytes", "raw_url"]

ROWS = 100
_SORTS: dict[str, Callable[[EntryInfo], Any]] = {
    "size": lambda row: row.size or 0,
    "time": lambda row: row.updated_at or 0,
    "type": lambda row: (row.entry_type, row.content_type or ""),
}
_WILD = frozenset("*?[")
_FORMS = {"rename": "Rename", "move": "Move", "copy": "Copy"}


def raw_url(path: Path) -> str:
    """Returns the address of a file's bytes."""
    return "/files" + quote(format_path(path), safe="/")


class FilesPage(PortalPage):
    """What stands at a path."""

    name: ClassVar[str] = "files"
    path: ClassVar[str] = "files/{path:path}"
    title: ClassVar[str] = "Files"
    place: ClassVar[int | None] = 0
    shows_entries: ClassVar[bool] = True

    def show(self, request: PortalRequest) -> Answer:
        """A directory's listing, or a file; a path that may not be seen looks like one with nothing at it."""
        path: Path = request.fields["path"]
        try:
            head = request.send(read_path, path, FileQuery(limit=1), method="HEAD")
            head.close()
            headers = head.headers
            form = request.query.get("do")
            if form in _FORMS:
                return _form_page(request, path, form)
            if headers["x-svc-entry-type"] == ENTRY_TYPE_NAMES[EntryKind.DIRECTORY]:
                return _directory_page(request, path)
            return _file_page(request, path, headers)
        except (Forbidden, NotFound):
            raise NotFound("There is nothing at this path.") from None

    def acts(self) -> Mapping[str, Act]:
        """What the forms of these pages ask for."""
        return acts()

    def refused(self, request: PortalRequest, message: Message) -> Answer:
        """Said on the page that had the form."""
        is_form = request.form.get("action") == "rename"
        back = request.url("files", {"do": "rename"} if is_form else None, path=request.fields["path"])
        return Redirect(back, message)


def _directory_page(request: PortalRequest, path: Path) -> Shown:
    name, after, sort = request.query.get("name"), request.query.get("after"), request.query.get("sort")
    query = FileQuery(limit=ROWS, after=after or None, glob=_glob_of(name))
    listing = msgspec.json.decode(request.send(read_path, path, query).read(), type=Listing)
    rows = listing.items
    is_whole = not listing.has_more and not after
    if is_whole and sort in _SORTS:
        rows = sorted(rows, key=_SORTS[sort], reverse=True)
    shown = [_row(request, row) for row in rows]
    pause()  # between two pieces of work of some milliseconds each
    values = {
        "path": path,
        "crumbs": request.crumbs("files", "Files", path),
        "rows": shown,
        "total": listing.total,
        "name": name,
        "after": after,
        "sort": sort if is_whole else "",
        "is_whole": is_whole,
        "here": request.url("files", path=path),
        "sort_urls": {
            one: request.url("files", {"name": name, "sort": one}, path=path) for one in ("", *_SORTS)
        },
        "next_url": request.url("files", {"name": name, "after": listing.next_cursor}, path=path)
        if listing.has_more
        else None,
        "actions": request.actions(PortalEntry(path, "directory")),
        "may_create": request.may(Operation.CREATE, (*path, "new")),
        "upload_path": format_path(path).rstrip("/") + "/",
    }
    return Shown("directory.html", values, title=path[-1] if path else "Files")


def _file_page(request: PortalRequest, path: Path, headers: Any) -> Shown:
    content_type = headers.get("content-type", "")
    base = content_type.partition(";")[0].strip().lower()
    size = int(headers["content-length"])
    url = raw_url(path)
    file = PreviewedFile(path, base, size, url, lambda most: first_bytes(request, path, min(most, size)))
    values = {
        "path": path,
        "crumbs": request.crumbs("files", "Files", path),
        "here": request.url("files", path=path),
        "raw_url": url,
        "content_type": content_type,
        "size": size,
        "headers": headers,
        "created_ms": int(headers["x-svc-created-at"]),
        "updated_ms": int(headers["x-svc-updated-at"]),
        "permissions": request.context.permissions(path),
        "actions": request.actions(PortalEntry(path, "file", base)),
        "may_delete": request.may(Operation.DELETE, path),
        "preview": request.preview(file),
    }
    return Shown("file.html", values, title=path[-1])


def _form_page(request: PortalRequest, path: Path, form: str) -> Shown:
    values = {
        "path": path,
        "crumbs": request.crumbs("files", "Files", path),
        # The page that comes next must be there still.
        "here": request.url("files", path=path if form == "rename" else path[:-1]),
        "back": request.url("files", path=path[:-1]),
        "form": form,
        "paths": [format_path(path)],
        "title": _FORMS[form],
        "destination": format_path(path[:-1]),
    }
    return Shown("form.html", values, title=f"{_FORMS[form]} {path[-1] if path else '/'}")


def first_bytes(request: PortalRequest, path: Path, most: int, query: FileQuery = FileQuery()) -> bytes:
    """Returns the beginning of a file."""
    if most <= 0:
        return b""
    answer = request.send(read_path, path, query, fields={"Range": f"bytes=0-{most - 1}"})
    content = bytearray()
    for piece in answer.pieces:
        content += piece
        if len(content) >= most:
            break
    answer.close()
    return bytes(content[:most])


def _row(request: PortalRequest, row: EntryInfo) -> dict[str, Any]:
    path = parse_path(row.path)
    kind = ENTRY_TYPE_NAMES[row.entry_type]
    return {
        "path": row.path,
        "name": row.name,
        "kind": kind,
        "url": request.url("files", path=path),
        "size": row.size,
        "updated_at": row.updated_at,
        "content_type": row.content_type,
        "file_count": row.file_count or None,
        "target": row.target or None,
        "actions": request.actions(PortalEntry(path, kind, row.content_type)),
    }


def _glob_of(name: str) -> str | None:
    """The pattern for what was typed: itself where it is one, else whatever has it in its name."""
    text = name.strip().replace("/", "")
    if not text:
        return None
    return text if _WILD & set(text) else f"*{text}*"
