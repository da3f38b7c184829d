"""Clients that do a bit of everything, and count what they did and what they were answered.

A request that was cut off, by the kill of a worker or its end, has no answer: the server may have counted it,
with any status, or not. So it is with the last answer before: it may be there before a worker counts it, and
is killed. Both are counted apart.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from svc_blackbox.client import Client, files
from svc_blackbox.client_threads import ClientThreads

__all__ = ["Counted", "CountingClients", "Done"]

FILES = "/files/{path:path}"
NAMES = 200
LARGE = 1_500_000
RECONNECT = 40
"""After so many requests a client connects anew, perhaps to another worker."""


class Done(NamedTuple):
    """One sort of answered request, as the server labels it; without a route there is no method either."""

    route: str
    method: str
    status: str


class Counted:
    """What clients have counted.

    Attributes:
        answered: how often each sort was answered.
        cut: requests without an answer, by route and method.
        uncertain: the last answers before those, on their connections.
        received: bytes of the bodies of answered requests.
        received_at_most: those of the others too.
    """

    def __init__(self) -> None:
        self.answered: Counter[Done] = Counter()
        self.cut: Counter[tuple[str, str]] = Counter()
        self.uncertain: Counter[Done] = Counter()
        self.received = 0
        self.received_at_most = 0
        self._mutex = threading.Lock()

    def note_answer(self, done: Done, size: int) -> None:
        """An answer has come whole."""
        with self._mutex:
            self.answered[done] += 1
            self.received += size
            self.received_at_most += size

    def note_cut(self, route: str, method: str, size: int, before: Done | None) -> None:
        """None will come."""
        with self._mutex:
            self.cut[route, method] += 1
            self.received_at_most += size
            if before is not None:
                self.uncertain[before] += 1


class CountingClients(ClientThreads):
    """Threads with a connection each, at a steady pace.

    Args:
        url: of the server.
        headers: those of root's requests.
        clients: how many.
        pace: requests a second, of each.
        seed: what they do follows from it.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, clients: int, pace: float, seed: int) -> None:
        self.counted = Counted()
        self.failures: list[BaseException] = []
        super().__init__(
            [_Worker(self, url, headers, seed * 1000 + number, pace).run for number in range(clients)]
        )


class _Worker:
    def __init__(
        self, clients: CountingClients, url: str, headers: Mapping[str, str], seed: int, pace: float
    ) -> None:
        self._clients = clients
        self._counted = clients.counted
        self._client = Client(url)
        self._headers = dict(headers)
        self._random = random.Random(seed)
        self._interval = 1 / pace
        self._before: Done | None = None
        kinds: dict[Callable[[], None], int] = {
            self.get: 30,
            self.put: 15,
            self.absent: 6,
            self.head: 4,
            self.part: 5,
            self.unchanged: 5,
            self.listing: 5,
            self.remove: 3,
            self.batch: 2,
            self.upload: 1,
            self.download: 1,
            self.stream: 1,
            self.stranger: 8,
            self.wrong_key: 1,
            self.malformed: 3,
            self.no_route: 2,
            self.no_method: 2,
            self.whoami: 3,
            self.snapshots: 1,
        }
        self._kinds, self._weights = list(kinds), list(kinds.values())

    def run(self) -> None:
        try:
            due = time.monotonic()
            number = 0
            while not self._clients.wait(max(0.0, due - time.monotonic())):
                due = max(due, time.monotonic() - 1) + self._interval * self._random.uniform(0.5, 1.5)
                number += 1
                if number % RECONNECT == 0:
                    self._close()
                self._random.choices(self._kinds, self._weights)[0]()
        except BaseException as error:
            self._clients.failures.append(error)
        finally:
            self._close()

    def get(self) -> None:
        self._ask(FILES, "GET", self._path())

    def put(self) -> None:
        self._ask(FILES, "PUT", self._path(), self._random.randbytes(self._random.randrange(5000)))

    def absent(self) -> None:
        self._ask(FILES, "GET", files("/absent"))

    def head(self) -> None:
        self._ask(FILES, "HEAD", self._path())

    def part(self) -> None:
        start = self._random.randrange(8000)  # Mostly behind the end.
        self._ask(FILES, "GET", self._path(), Range=f"bytes={start}-{start + 500}")

    def unchanged(self) -> None:
        self._ask(FILES, "GET", self._path(), If_None_Match="*")

    def listing(self) -> None:
        self._ask(FILES, "GET", files("/counted") + "?limit=20")

    def remove(self) -> None:
        self._ask(FILES, "DELETE", self._path())

    def batch(self) -> None:
        operations = [{"op": "put", "path": f"/batches/{self._random.randrange(NAMES)}", "content": "x"}]
        body = json.dumps({"operations": operations * 3}).encode()
        self._ask("/files/batch", "POST", "/files/batch", body, Content_Type="application/json")

    def upload(self) -> None:
        self._ask(FILES, "PUT", files("/large"), self._random.randbytes(LARGE))

    def download(self) -> None:
        self._ask(FILES, "GET", files("/large"))

    def stream(self) -> None:
        self._ask("/system/events", "GET", "/system/events?follow=false")

    def stranger(self) -> None:
        self._ask(FILES, "GET", self._path(), Authorization="Bearer nobody's")

    def wrong_key(self) -> None:
        body = json.dumps({"api_key": f"svc_k_{'0' * 32}_{'0' * 64}"}).encode()
        self._ask("/auth/token", "POST", "/auth/token", body, Content_Type="application/json")

    def malformed(self) -> None:
        self._ask(FILES, "GET", files("/counted") + "?limit=many")

    def no_route(self) -> None:
        self._ask("", "GET", f"/nothing/{self._random.randrange(NAMES)}")

    def no_method(self) -> None:
        self._ask("", "DELETE", "/system/whoami")

    def whoami(self) -> None:
        self._ask("/system/whoami", "GET", "/system/whoami")

    def snapshots(self) -> None:
        self._ask("/versions/snapshots", "GET", "/versions/snapshots")

    def _path(self) -> str:
        return files(f"/counted/{self._random.randrange(NAMES)}")

    def _ask(self, route: str, method: str, target: str, body: bytes = b"", **headers: str) -> None:
        fields = {**self._headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        labelled = method if route else ""
        try:
            answer = self._client.request(method, target, body or None, fields)
        except (OSError, http.client.HTTPException):
            self._counted.note_cut(route, labelled, len(body), self._before)
            self._before = None
            return
        self._before = Done(route, labelled, str(answer.status))
        self._counted.note_answer(self._before, len(body))

    def _close(self) -> None:
        self._client.close()
        self._before = None
