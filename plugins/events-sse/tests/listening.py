"""A client of event streams, as browsers have one: it reads in a thread of its own."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import urlsplit

__all__ = ["Listener", "wait_for"]

SECONDS = 60.0

Document = dict[str, Any]


def wait_for(holds: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Asks until the answer is true, and returns it."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.01)
    return found


class Listener:
    """Listens to a stream from when it is made, until the server or ``close`` ends it.

    Attributes:
        status: of the answer.
        events: the envelopes so far; ``server_ready`` and ``heartbeat`` too.
        comments: the comment lines so far.
        is_over: whether the answer has ended in good order.
    """

    def __init__(
        self, url: str, path: str = "/system/events", *, last: str | None = None, token: str | None = None
    ) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=SECONDS)
        headers = {"Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = last
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._connection.request("GET", path, headers=headers)
        # Kept: the connection lets go of it when the answer says that it ends with it.
        self._socket = self._connection.sock
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self.headers = {name.lower(): value for name, value in self._answer.getheaders()}
        self.events: list[Document] = []
        self.comments: list[str] = []
        self.is_over = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def told(self) -> list[Document]:
        """What happened: the events without those of the stream itself."""
        return [one for one in list(self.events) if one["event_type"] not in ("server_ready", "heartbeat")]

    @property
    def names(self) -> list[str]:
        """The types of all events so far."""
        return [one["event_type"] for one in list(self.events)]

    @property
    def paths(self) -> list[str]:
        """The paths of the entries so far."""
        return [entry["path"] for one in self.told for entry in one["payload"].get("entries", ())]

    def until(self, holds: Callable[[Listener], Any]) -> Any:
        """Waits until something holds of it."""
        return wait_for(lambda: holds(self))

    def join(self, seconds: float = SECONDS) -> None:
        """Waits until the stream has ended."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the stream goes on"

    def close(self) -> None:
        """Leaves."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._connection.close()

    def _read(self) -> None:
        fields: dict[str, str] = {}
        try:
            while line := self._answer.readline():
                text = line.decode().rstrip("\n")
                if text.startswith(":"):
                    self.comments.append(text)
                elif text:
                    name, _, value = text.partition(": ")
                    fields[name] = value
                elif fields:
                    event = json.loads(fields["data"])
                    assert (fields["id"], fields["event"]) == (event["event_id"], event["event_type"])
                    self.events.append(event)
                    fields = {}
            self.is_over = True
        except (OSError, http.client.HTTPException, ValueError):
            pass
