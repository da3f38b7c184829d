"""A client of a node's event stream, which keeps the paths that are there by what the events say alone."""

from __future__ import annotations

import http.client
import json
import threading
from typing import Any

from cluster.node import Node

__all__ = ["Watcher"]

_WAIT_S = 0.2
_SILENCE_S = 60.0


class Watcher:
    """Reads events from the beginning of a log, and comes back where it was; after a gap it looks anew.

    Attributes:
        paths: of files that exist, by what was heard.
        gaps: how often events were missing.
    """

    def __init__(self, node: Node) -> None:
        self.paths: set[str] = set()
        self.gaps = 0
        self._node = node
        self._last = "0"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name=f"watches {node.name}")
        self._thread.start()

    def tell_to_stop(self) -> None:
        """Lets the reading end soon."""
        self._stop.set()

    def stop(self) -> None:
        """Ends the reading."""
        self._stop.set()
        self._thread.join(_SILENCE_S + 5)
        assert not self._thread.is_alive()

    def finish(self) -> set[str]:
        """Ends the reading, hears what has not been heard yet, and returns the paths."""
        self.stop()
        self._read(follow=False)
        return self.paths

    def _work(self) -> None:
        while not self._stop.wait(_WAIT_S):
            if self._node.is_up:
                try:
                    self._read(follow=True)
                except (OSError, http.client.HTTPException, ValueError):
                    continue

    def _read(self, *, follow: bool) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._node.port, timeout=_SILENCE_S)
        try:
            target = "/system/events?events=entries_created,entries_deleted"
            target += "" if follow else "&follow=false"
            connection.request("GET", target, headers={"Last-Event-ID": self._last})
            answer = connection.getresponse()
            if answer.status != 200:
                assert follow, (answer.status, answer.read())
                return
            fields: dict[str, str] = {}
            while line := answer.readline():
                if self._stop.is_set() and follow:
                    return
                if line == b"\n":
                    self._take(fields)
                    fields = {}
                elif not line.startswith(b":"):
                    name, _, value = line.decode().rstrip("\n").partition(": ")
                    fields[name] = value
        finally:
            connection.close()

    def _take(self, fields: dict[str, str]) -> None:
        kind = fields.get("event")
        if kind == "gap":
            self.gaps += 1
            self.paths = set(self._listed("/"))
        elif kind in ("entries_created", "entries_deleted"):
            for entry in json.loads(fields["data"])["payload"]["entries"]:
                path: str = entry["path"]
                below = path.rstrip("/") + "/"
                self.paths = {one for one in self.paths if one != path and not one.startswith(below)}
                if kind == "entries_created":
                    self.paths |= set(self._listed(path))
        if "id" in fields:
            self._last = fields["id"]

    def _listed(self, path: str) -> list[str]:
        """The files at and below a path: an event names a directory for all that it holds."""
        with self._node.client() as client:
            response = client.get("/files" + path, depth=-1, limit=10_000)
            if response.status == 404:
                return []
            if response.status != 200:
                raise ValueError(response.status)
            if response["X-Svc-Entry-Type"] != "directory":
                return [path]
            items: list[Any] = response.json()["items"]
            return [item["path"] for item in items]
