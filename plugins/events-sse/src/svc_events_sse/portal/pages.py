"""The page of events and its card: what the stream says to who reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from svc_events.models import EventQuery
from svc_events.operations import stream_events
from svc_portal.api import Answer, PortalPage, Shown, StateCard

from svc.errors import AuthRequired, SvcError
from svc.plugin import parse_path

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

    from svc.plugin import OperationAnswer

__all__ = ["EventsCard", "EventsPage"]

SERVER_READY = "server_ready"
_ROWS = 50
_CARD_ROWS = 5
_COMMITS = 100
_PATHS = 5
_MOST_BYTES = 4 * 1024 * 1024
_DIGITS = 12


class EventsPage(PortalPage):
    """What happened last to what the reader may see, and what happens from now on."""

    name: ClassVar[str] = "events"
    path: ClassVar[str] = "events"
    title: ClassVar[str] = "Events"
    place: ClassVar[int | None] = 80

    def show(self, request: PortalRequest) -> Answer:
        """The last events, the newest first; of some types or paths, if the address says so."""
        types, prefix = request.query.get("events").strip(), request.query.get("path").strip()
        values: dict[str, Any] = {
            "types": types,
            "prefix": prefix,
            "here": request.url("events"),
            "rows": [],
            "error": None,
            "place": "",
        }
        try:
            query = EventQuery(events=types or None, path_prefix=prefix or None, follow=False)
            values["rows"], values["place"] = _last_events(request, query, _ROWS)
        except AuthRequired:
            raise
        except SvcError as error:
            values["error"] = error.message
        return Shown("events.html", values)


class EventsCard(StateCard):
    """What happened last."""

    name: ClassVar[str] = "events"
    title: ClassVar[str] = "Events"
    template: ClassVar[str] = "card.html"
    place: ClassVar[int] = 60

    def values(self, request: PortalRequest) -> Mapping[str, Any] | None:
        """The last events that who asks may see."""
        rows, _ = _last_events(request, EventQuery(follow=False), _CARD_ROWS)
        return {"rows": rows, "url": request.url("events")}


def _last_events(request: PortalRequest, query: EventQuery, most: int) -> tuple[list[dict[str, Any]], str]:
    """The last events of the last commits, the newest first, and the place where they end."""
    first = msgspec.structs.replace(query, events=SERVER_READY, path_prefix=None)
    place = next((one["event_id"] for one in _events(request.send(stream_events, first))), None)
    if place is None:
        return [], ""
    sequence = int(place.partition(".")[0])
    begin = f"{max(0, sequence - _COMMITS):0{_DIGITS}}"
    since = msgspec.structs.replace(query, last_event_id=begin)
    found = [one for one in _events(request.send(stream_events, since)) if one["event_type"] != SERVER_READY]
    return [_row(request, one) for one in reversed(found[-most:])], place


def _events(answer: OperationAnswer) -> Iterator[dict[str, Any]]:
    """The events of a stream that ends; of one that is too long, those that come first."""
    text, size = bytearray(), 0
    try:
        for piece in answer.pieces:
            text += piece
            size += len(piece)
            *frames, rest = bytes(text).split(b"\n\n")
            text = bytearray(rest)
            for frame in frames:
                data = [line[6:] for line in frame.split(b"\n") if line.startswith(b"data: ")]
                if data:
                    yield msgspec.json.decode(data[0])
            if size > _MOST_BYTES:
                return
    finally:
        answer.close()


def _row(request: PortalRequest, event: dict[str, Any]) -> dict[str, Any]:
    payload = event.get("payload") or {}
    entries = payload.get("entries") if isinstance(payload, dict) else None
    paths = [one["path"] for one in entries or () if isinstance(one, dict) and "path" in one]
    if not paths and isinstance(payload, dict) and isinstance(payload.get("path"), str):
        paths = [payload["path"]]
    return {
        "type": event["event_type"],
        "time_ms": event["timestamp"],
        "paths": [(path, _url(request, path)) for path in paths[:_PATHS]],
        "more": max(0, len(paths) - _PATHS),
        "details": "" if paths else msgspec.json.encode(payload).decode(),
    }


def _url(request: PortalRequest, path: str) -> str | None:
    try:
        return request.entry_url(parse_path(path))
    except SvcError:
        return None
