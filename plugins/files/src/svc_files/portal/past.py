"""Files and directories as they were: at a version, or at a time; nothing can be changed there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from svc_portal.api import Answer, PortalPage, PreviewedFile, Redirect, Shown

from svc.errors import Forbidden, InvalidInput, NotFound
from svc.plugin import EntryKind, Path, parse_path
from svc_files.items import ENTRY_TYPE_NAMES
from svc_files.models import EntryInfo, FileQuery, Listing
from svc_files.operations import read_path
from svc_files.portal.pages import ROWS, first_bytes, raw_url

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["PastPage"]

UNITS = {"minutes": 60, "hours": 3_600, "days": 86_400, "weeks": 604_800}
MOST_BACK = 100


class PastPage(PortalPage):
    """What stood at a path."""

    name: ClassVar[str] = "past"
    path: ClassVar[str] = "past/{path:path}"
    title: ClassVar[str] = "The past"
    follows: ClassVar[str | None] = "files"

    def show(self, request: PortalRequest) -> Answer:
        """A directory's listing or a file, with forms that choose another time."""
        path: Path = request.fields["path"]
        values, chosen = _choice(request, path), _chosen(request)
        if chosen is None:
            return Shown("past.html", values, title=_title(path))
        try:
            head = request.send(read_path, path, msgspec.structs.replace(chosen, limit=1), method="HEAD")
        except (Forbidden, NotFound, InvalidInput):
            values["missing"] = True
            return Shown("past.html", values, title=_title(path), status=404)
        head.close()
        # From here on the version itself is named: what a time or a fork names may be another soon.
        version = head.headers["x-svc-version"]
        query = FileQuery(version=version)
        values |= {"version": version, "crumbs": request.crumbs("past", "Files", path, {"version": version})}
        if head.headers["x-svc-entry-type"] == ENTRY_TYPE_NAMES[EntryKind.DIRECTORY]:
            return Shown("past.html", values | _listing(request, path, query), title=_title(path))
        if request.query.get("raw"):
            return Redirect(f"{raw_url(path)}?version={version}")
        return Shown("past.html", values | _file(request, path, query, head.headers), title=_title(path))


def _title(path: Path) -> str:
    return f"{path[-1] if path else 'All files'}, in the past"


def _choice(request: PortalRequest, path: Path) -> dict[str, Any]:
    """What the forms show."""
    back, unit = request.query.get("back"), request.query.get("unit")
    return {
        "path": path,
        "crumbs": request.crumbs("files", "Files", path),
        "here": request.url("past", path=path),
        "now_url": request.url("files", path=path),
        "history_url": request.url_if("history", path=path),
        "at": request.query.get("at"),
        "units": list(UNITS),
        "unit": unit if unit in UNITS else "days",
        "back": int(back) if back.isascii() and back.isdigit() and len(back) < 4 else 1,
        "most_back": MOST_BACK,
        "version": None,
        "missing": False,
        "rows": None,
        "file": None,
    }


def _chosen(request: PortalRequest) -> FileQuery | None:
    """Which state is asked for; the first that is given."""
    query = request.query
    if query.get("version"):
        return FileQuery(version=query.get("version"))
    if query.get("snapshot"):
        return FileQuery(snapshot=query.get("snapshot"))
    if query.get("fork"):
        return FileQuery(fork=query.get("fork"))
    if query.get("at"):
        return FileQuery(at=query.get("at"))
    if "back" in query:
        back, unit = query.get("back"), query.get("unit")
        if not (back.isascii() and back.isdigit() and len(back) < 10 and unit in UNITS):
            raise InvalidInput("It is a whole number of minutes, hours, days or weeks ago.", field="back")
        return FileQuery(at=str(max(0, int((time.time() - int(back) * UNITS[unit]) * 1000))))
    return None


def _listing(request: PortalRequest, path: Path, query: FileQuery) -> dict[str, Any]:
    after = request.query.get("after") or None
    wanted = msgspec.structs.replace(query, limit=ROWS, after=after)
    listing = msgspec.json.decode(request.send(read_path, path, wanted).read(), type=Listing)
    own = {"version": query.version}
    following = request.url("past", {**own, "after": listing.next_cursor}, path=path)
    return {
        "rows": [_row(request, row, own) for row in listing.items],
        "total": listing.total,
        "next_url": following if listing.has_more else None,
    }


def _row(request: PortalRequest, row: EntryInfo, own: dict[str, Any]) -> dict[str, Any]:
    return {
        "entry": row,
        "kind": ENTRY_TYPE_NAMES[row.entry_type],
        "url": request.url("past", own, path=parse_path(row.path)),
        "target": row.target or None,
    }


def _file(request: PortalRequest, path: Path, query: FileQuery, headers: Any) -> dict[str, Any]:
    content_type = headers.get("content-type", "")
    size = int(headers["content-length"])
    url = f"{raw_url(path)}?version={query.version}"
    file = PreviewedFile(
        path,
        content_type.partition(";")[0].strip().lower(),
        size,
        url,
        lambda most: first_bytes(request, path, min(most, size), query),
    )
    return {
        "file": file,
        "content_type": content_type,
        "updated_ms": int(headers["x-svc-updated-at"]),
        "hash": headers["x-svc-content-hash"],
        "preview": request.preview(file),
    }
