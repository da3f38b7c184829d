"""What was found, in the parts that the template shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from svc.plugin import parse_path
from svc_query.models import QueryAnswer, SearchAnswer
from svc_query.portal.picture import picture_of

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["shown_answer", "shown_row"]

_SNIPPETS = 3
_OWN = frozenset(("path", "score", "total_size", "content_type", "created_at", "updated_at", "matched_by"))
_AGGREGATES = ("count", "sum", "avg", "min", "max")


def shown_answer(request: PortalRequest, answer: QueryAnswer | SearchAnswer) -> dict[str, Any]:
    """Returns an answer as the template takes it."""
    said: dict[str, Any] = msgspec.to_builtins(answer)
    return {
        "rows": [shown_row(request, row) for row in said.get("results", ())],
        "total": said.get("total_count"),
        "has_more": bool(said.get("has_more")),
        "next_cursor": said.get("next_cursor"),
        "plan": said.get("plan"),
        "picture": picture_of(said["plan"]) if said.get("plan") else None,
        "groups": [_pairs({**group["key"], **_aggregates(group)}) for group in said.get("groups", ())],
        "aggregates": _pairs(_aggregates(said)),
        "meta": said.get("meta") or {},
    }


def shown_row(request: PortalRequest, row: dict[str, Any]) -> dict[str, Any]:
    """Returns a file that was found; one without a path has no address."""
    path = row.get("path")
    return {
        "path": path,
        "url": None if path is None else request.entry_url(parse_path(path)),
        "score": row.get("score"),
        "size": row.get("total_size"),
        "updated_at": row.get("updated_at"),
        "content_type": row.get("content_type"),
        "matched_by": row.get("matched_by") or [],
        "snippets": _snippets(row.get("matches") or ()),
        "others": _pairs({name: value for name, value in row.items() if name not in {*_OWN, "matches"}}),
    }


def _snippets(matches: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those matches that show something, each text once; what the path says already is left out."""
    found: dict[str, dict[str, Any]] = {}
    for match in matches:
        text = match.get("snippet")
        if text and not str(match.get("field")).startswith("@"):
            found.setdefault(text, match)
    return [
        {"field": match.get("field"), "parts": _parts(text, match.get("highlights") or ())}
        for text, match in list(found.items())[:_SNIPPETS]
    ]


def _parts(text: str, highlights: Iterable[Sequence[int]]) -> list[tuple[str, bool]]:
    """A text in parts, each with whether it is what was found."""
    parts: list[tuple[str, bool]] = []
    end = 0
    for start, stop in sorted((one[0], one[1]) for one in highlights):
        if start < end or stop > len(text):
            continue
        parts += [(text[end:start], False), (text[start:stop], True)]
        end = stop
    return [*parts, (text[end:], False)]


def _aggregates(said: dict[str, Any]) -> dict[str, Any]:
    """Flat: ``count``, and ``sum price`` for each field of the others."""
    found: dict[str, Any] = {}
    for name in _AGGREGATES:
        value = said.get(name)
        if isinstance(value, dict):
            found |= {f"{name} {field}": one for field, one in value.items()}
        elif value is not None:
            found[name] = value
    return found


def _pairs(values: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, _text(value)) for name, value in values.items()]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
