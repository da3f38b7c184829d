"""The events of a server for programs: what ``svc_client`` has for files, for the routes of event streams.

``for event in Events(client).stream(): ...`` goes on for ever, over lost connections and restarts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from svc.errors import ServiceUnavailable, SvcError
from svc_client import Client
from svc_events.api import GAP

__all__ = ["Events"]

_OF_STREAMS = ("server_ready", "heartbeat")
"""Made for each stream, and asked for whatever else is: their ids say how far it has read."""

_PAUSE_SECONDS = 1.0
_LONGEST_LINE = 64 << 20

Document = dict[str, Any]


class _Envelope(msgspec.Struct):
    event_id: str
    event_type: str
    timestamp: int
    payload: Document


class Events:
    """The streams of a server. Methods block, and raise the errors of ``svc.errors``."""

    def __init__(self, client: Client) -> None:
        self._transport = client.transport

    def stream(
        self,
        types: Sequence[str] = (),
        *,
        path_prefix: str | None = None,
        since: str | None = None,
        follow: bool = True,
        own: bool = False,
    ) -> Iterator[Document]:
        """Yields events as they happen, each an envelope as the server sends it.

        Args:
            types: only events of these types; none: of all.
            path_prefix: only those with a path that begins so.
            since: the id behind which to begin; None: now.
            follow: whether to go on when all that there was has come. A lost connection is made anew then.
            own: only what is addressed to the caller.
        """
        query = {"follow": "true" if follow else "false"}
        if types:
            query["events"] = ",".join((*types, *_OF_STREAMS))
        if path_prefix:
            query["path_prefix"] = path_prefix
        last = since
        while True:
            headers = {"Accept": "text/event-stream"}
            if last is not None:
                headers["Last-Event-ID"] = last
            try:
                url = "/events/me" if own else "/system/events"
                with self._transport.request("GET", url, query=query, headers=headers) as response:
                    if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                        raise response.foreign()
                    for event in _messages(response.arriving(), response.foreign):
                        last = event["event_id"]
                        if not types or event["event_type"] in (*types, GAP):
                            yield event
            except ServiceUnavailable:
                if not follow or last is None:
                    raise
            if not follow:
                return
            time.sleep(_PAUSE_SECONDS)


def _messages(pieces: Iterable[bytes], foreign: Callable[[], SvcError]) -> Iterator[Document]:
    """The data of each message of an event stream; the server writes it in one line, behind the id."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                try:
                    event = msgspec.json.decode(line[5:], type=Document)
                    msgspec.convert(event, _Envelope)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    raise foreign() from None
                yield event
        if len(rest) > _LONGEST_LINE:
            raise foreign()
