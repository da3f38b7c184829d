"""Two versions of a path beside each other, and the way back to one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from svc_portal.api import Act, Answer, Message, PortalPage, Redirect, Shown, Undo

from svc.plugin import EntryKind, Path, format_path
from svc_history.models import ChangeSide, CompareQuery, PathChange, TextComparison, TextQuery
from svc_history.operations import compare_texts, compare_versions
from svc_history.portal.shown import ROWS, hidden_as_missing, past_url, short
from svc_history.portal.words import side_by_side
from svc_versions.api import models as version_models
from svc_versions.api import operations as versions

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["ComparePage", "change_rows"]

_PICTURES = frozenset(
    ("image/avif", "image/gif", "image/jpeg", "image/png", "image/svg+xml", "image/webp", "image/bmp")
)


class ComparePage(PortalPage):
    """Texts by line and word, pictures beside each other, directories as a list of changes."""

    name: ClassVar[str] = "compare"
    path: ClassVar[str] = "compare/{path:path}"
    title: ClassVar[str] = "Compare"
    follows: ClassVar[str | None] = "files"
    refused_to: ClassVar[str | None] = "history"

    def show(self, request: PortalRequest) -> Answer:
        """What differs; without versions a form that asks for them."""
        path: Path = request.fields["path"]
        source, to = request.query.get("from"), request.query.get("to") or "HEAD"
        values: dict[str, Any] = {
            "path": path,
            "crumbs": request.crumbs("history", "All files", path),
            "source": source,
            "to": to,
            "here": request.url("compare", path=path),
            "swap_url": request.url("compare", {"from": to, "to": source}, path=path),
            "kind": "",
            "restore": None,
        }
        if source:
            with hidden_as_missing():
                values |= _compared(request, path, source, to)
        return Shown("compare.html", values, title=f"Compare {path[-1] if path else 'all files'}")

    def acts(self) -> Mapping[str, Act]:
        """Puts a path back as a version has it."""
        return {"restore": _restored}


def _compared(request: PortalRequest, path: Path, source: str, to: str) -> dict[str, Any]:
    sides = request.call(compare_texts, path, TextQuery(source=source, to=to)) if path else None
    restorable = (
        sides is not None
        and sides.after is not None
        and source == "HEAD" != to
        and request.identity.is_unrestricted_root
    )
    found: dict[str, Any] = {"restore": sides.to if sides and restorable else None}
    if sides is None or _is_directory(sides.before) or _is_directory(sides.after):
        return found | _compared_directories(request, path, source, to)
    found |= {"sides": sides, "from_short": short(sides.source), "to_short": short(sides.to)}
    if isinstance(sides.lines, list):
        same = sides.before is not None and sides.after is not None and sides.before.hash == sides.after.hash
        rows = side_by_side(sides.lines)
        return found | {"kind": "text", "rows": rows, "is_same": same, "truncated": sides.truncated}
    return found | _beside(request, path, sides)


def _is_directory(side: ChangeSide | None) -> bool:
    return side is not None and side.entry_type == EntryKind.DIRECTORY


def _beside(request: PortalRequest, path: Path, sides: TextComparison) -> dict[str, Any]:
    """Of what is no text: pictures as such, of all else what is known of them."""
    shown = []
    for label, side, version in (("Before", sides.before, sides.source), ("After", sides.after, sides.to)):
        url = None
        if side is not None and side.content_type in _PICTURES:
            url = past_url(request, path, version, raw="1")
        shown.append((label, side, url))
    return {"kind": "bytes", "shown": shown}


def _compared_directories(request: PortalRequest, path: Path, source: str, to: str) -> dict[str, Any]:
    query = CompareQuery(
        source=source, to=to, path=format_path(path), limit=ROWS, after=request.query.get("after") or None
    )
    page = request.call(compare_versions, query)
    following = {"from": page.source, "to": page.to, "after": page.next_cursor}
    return {
        "kind": "changes",
        "changes": change_rows(request, page.changes, page.source, page.to),
        "from_short": short(page.source),
        "to_short": short(page.to),
        "cut": page.truncated is True,
        "next_url": request.url("compare", following, path=path) if page.has_more is True else None,
    }


def change_rows(
    request: PortalRequest, changes: list[PathChange], source: str, to: str
) -> list[dict[str, Any]]:
    """Returns the rows of changed paths, each with the way to what changed in it."""
    rows = []
    for change in changes:
        path = tuple(change.path.strip("/").split("/"))
        rows.append(
            {
                "change": change,
                "url": None
                if change.entry_type == EntryKind.DIRECTORY
                else request.url("compare", {"from": source, "to": to}, path=path),
                "before_size": change.before.size if change.before else None,
                "after_size": change.after.size if change.after else None,
            }
        )
    return rows


def _restored(request: PortalRequest) -> Answer:
    path: Path = request.fields["path"]
    form = request.form
    body = version_models.PathRestoreBody(
        snapshot=form.get("snapshot") or None, version=form.get("version") or None
    )
    named = TextQuery(source="HEAD", to=body.snapshot or body.version or "HEAD")
    was_there = request.call(compare_texts, path, named).before is not None
    done = request.call(versions.restore_path, path, body)
    undo = None
    if was_there:
        fields = {"action": "restore", "snapshot": done.auto_snapshot}
        undo = Undo(request.url("compare", path=path), fields)
    text = (
        f"Restored {path[-1]} from {body.snapshot or short(done.from_version)}. "
        f"What was there is in the snapshot {done.auto_snapshot}."
    )
    return Redirect(request.url("history", path=path), Message(text, undo))
