"""What is sent of an event: its envelope, or a CloudEvents 1.0 message around its payload.

CloudEvents: https://github.com/cloudevents/spec, version 1.0.2, JSON format and HTTP protocol binding.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from svc_events_webhook.models import Format

if TYPE_CHECKING:
    from svc_events.api import Event, FeedEvent

__all__ = ["Message", "make_message"]

_JSON = "application/json"


class Message(msgspec.Struct, frozen=True):
    """The body of a request, and the header fields that say what it is."""

    body: bytes
    fields: dict[str, str]


def make_message(found: FeedEvent, form: Format, source: str) -> Message:
    """Returns an event in one of the formats; ``source`` says whose it is, as a URI."""
    if form == "envelope":
        return Message(found.json, {"Content-Type": _JSON})
    event = found.event
    attributes = _attributes(event, source)
    if form == "cloudevents":
        value = {**attributes, "datacontenttype": _JSON, "data": event.payload}
        return Message(msgspec.json.encode(value), {"Content-Type": "application/cloudevents+json"})
    # HTTP protocol binding 3.1.3.2: what is no printable ASCII is percent-encoded, as are quotes and "%".
    safe = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
    fields = {f"ce-{name}": quote(value, safe=safe) for name, value in attributes.items()}
    return Message(msgspec.json.encode(event.payload), {"Content-Type": _JSON, **fields})


def _attributes(event: Event, source: str) -> dict[str, Any]:
    time = datetime.fromtimestamp(event.timestamp / 1000, UTC)
    attributes = {
        "specversion": "1.0",
        "id": event.event_id,
        "source": source,
        "type": f"svc.{event.event_type}",
        "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    path = event.payload.get("path")
    return attributes | ({"subject": path} if isinstance(path, str) and path else {})
