"""The server's event stream, which tells a watching mirror when to ask what changed."""

from __future__ import annotations

import threading
import time

import msgspec

from svc.errors import ServiceUnavailable
from svc_client import Client

__all__ = ["Follower"]

_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_ASK_ANYWAY_S = 300.0
"""Rights may change without an event that the caller may see."""
_OF_STREAMS = ("server_ready", "heartbeat", "metrics")


class _Event(msgspec.Struct):
    event_id: str
    event_type: str


class Follower:
    """Holds an event stream of a directory in a thread, and makes it anew when it ends.

    A server that has none, or refuses it, is asked again now and then; meanwhile ``must_ask`` is always true.

    Args:
        client: asks the server.
        directory: path of the directory.
    """

    def __init__(self, client: Client, directory: str) -> None:
        self._client = client
        self._directory = directory
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._is_told = False
        self._last: str | None = None
        self._failures = 0
        self._asked_at = float("-inf")
        self._thread = threading.Thread(target=self._run, daemon=True, name="svc-mirror-events")
        self._thread.start()

    def must_ask(self) -> bool:
        """Whether the server may have changed since this was called last."""
        now = time.monotonic()
        is_told = self._is_told
        has_changed = self._changed.is_set()
        self._changed.clear()
        if is_told and not has_changed and now - self._asked_at < _ASK_ANYWAY_S:
            return False
        self._asked_at = now
        return True

    def wait(self, seconds: float) -> None:
        """Waits until something has changed, but not longer than so many seconds."""
        self._changed.wait(seconds)

    def close(self) -> None:
        """Lets the stream end with what comes next; waits for nothing."""
        # To close it from here would wait for that too.
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._read()
            except ServiceUnavailable:
                self._failures += 1
            except Exception:  # noqa: BLE001 - whatever a server says, the mirror goes on without its stream
                self._failures = max(self._failures + 1, 6)
            if self._is_told:
                # From here on nobody tells, until there is another stream.
                self._is_told = False
                self._changed.set()
            self._stopping.wait(min(_LONGEST_PAUSE_S, _PAUSE_S * 2.0 ** min(self._failures, 6)))

    def _read(self) -> None:
        headers = {"Accept": "text/event-stream"}
        if self._last is not None:
            headers["Last-Event-ID"] = self._last
        response = self._client.request(
            "GET", "/system/events", query={"path_prefix": self._directory}, headers=headers
        )
        if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
            response.close()
            raise response.foreign()
        self._is_told = True
        self._failures = 0
        if self._last is None:
            # What happened before the stream began.
            self._changed.set()
        for data in response.event_data():
            event = msgspec.json.decode(data, type=_Event)
            self._last = event.event_id
            if event.event_type not in _OF_STREAMS:
                self._changed.set()
            if self._stopping.is_set():
                response.close()
                return
