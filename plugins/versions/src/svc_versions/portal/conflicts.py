"""The conflicts of a merge as the page shows them: three sides, texts where they are short, and a choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from svc.errors import InvalidInput
from svc.plugin import Entry, EntryKind, Operation, Path, parse_path
from svc_versions.models import Resolution

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["conflict_values", "resolutions_of"]

ROWS = 100
_TEXTS = 8
_MOST_TEXT = 24 * 1024
_SIDES = ("base", "ours", "theirs")


def conflict_values(request: PortalRequest, details: dict[str, Any]) -> dict[str, Any]:
    """Returns what the template shows of the conflicts that a merge has named."""
    roots = {side: details.get(side) for side in _SIDES}
    shown = details["conflicts"][:ROWS]
    rows = [_row(request, one, roots) for one in shown]
    left = _TEXTS
    for row in rows:
        row["texts"] = _texts(request, row, roots) if left else None
        left -= row["texts"] is not None
    return {
        "conflicts": rows,
        "count": details["conflict_count"],
        "left": details["conflict_count"] - len(shown),
    }


def resolutions_of(request: PortalRequest) -> list[Resolution]:
    """Returns what the form has decided; paths of which it says nothing are left out.

    Raises:
        InvalidInput: it says something else than a form of ours does.
    """
    form = request.form
    found = []
    for number in range(ROWS):
        take = form.get(f"take-{number}")
        if not take:
            continue
        values: dict[str, Any] = {
            "path": form.get(f"path-{number}"),
            "take": take,
            "ours": form.get(f"ours-{number}"),
            "theirs": form.get(f"theirs-{number}"),
        }
        if take == "text":
            # A browser ends lines in its own way, whatever the file has.
            text = form.get(f"text-{number}")
            values["content"] = text if form.get(f"crlf-{number}") else text.replace("\r\n", "\n")
        try:
            found.append(msgspec.convert(values, Resolution))
        except msgspec.ValidationError:
            raise InvalidInput("A path is taken from ours, theirs, both or a text.", field="take") from None
    return found


def _row(request: PortalRequest, conflict: dict[str, Any], roots: dict[str, Any]) -> dict[str, Any]:
    """A path with its three sides, each but the base with the way to how it differs."""
    path = parse_path(conflict["path"])

    def compare(source: str, to: str) -> str | None:
        is_there = conflict[source] or conflict[to]
        if not (is_there and roots[source] and roots[to]):
            return None
        return request.url_if("compare", {"from": roots[source], "to": roots[to]}, path=path)

    return {
        "path": conflict["path"],
        "sides": [conflict[side] for side in _SIDES],
        "seen": [(conflict[side] or {}).get("hash", "") for side in _SIDES],
        "differs": conflict["differs"],
        "ours_url": compare("base", "ours"),
        "theirs_url": compare("base", "theirs"),
        "both_url": compare("ours", "theirs"),
    }


def _texts(request: PortalRequest, row: dict[str, Any], roots: dict[str, Any]) -> list[str] | None:
    """The texts of the sides, an empty one where nothing is; None where one is no short text to be seen."""
    path = parse_path(row["path"])
    if not (request.may(Operation.READ, path) and request.may(Operation.DELETE, path)):
        return None  # what is not at HEAD needs both
    texts = [
        _text(request, path, roots[side], entry) for side, entry in zip(_SIDES, row["sides"], strict=True)
    ]
    known = [text for text in texts if text is not None]
    return known if len(known) == len(texts) else None


def _text(request: PortalRequest, path: Path, root: str | None, entry: dict[str, Any] | None) -> str | None:
    if entry is None or root is None:
        return ""
    if entry["entry_type"] != int(EntryKind.FILE) or entry["size"] > _MOST_TEXT:
        return None
    version = request.context.database.version_of(bytes.fromhex(root))
    stored: Entry | None = version.get(path)
    if stored is None:
        return ""
    content = version.read_all(stored)
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None
