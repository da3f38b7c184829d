"""A bounded mixture of what clients do to a database, at a steady pace.

The names come from a fixed set, so that the tree stays as large as it is after the first minutes; what
grows is the log alone.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any

from svc_blackbox.client import Client, Response, files
from svc_blackbox.client_threads import ClientThreads

__all__ = ["MixedLoad"]

DIRECTORIES = 40
FILES = 100
SMALL_BYTES = (100, 12_000)
LARGE_BYTES = (300_000, 1_500_000)
RECONNECT = 50
"""After so many requests a client connects anew."""

KEPT = 5
"""Snapshots and forks that each client lets stand."""


class MixedLoad(ClientThreads):
    """Clients, each with one connection and a thread, that do something at a steady pace.

    Attributes:
        done: how often each kind of work was done.
        unexpected: answers that should not have been, at most a few.

    Args:
        url: of the server.
        pace: requests a second, of all clients together.
        clients: how many.
        seed: what they do follows from it.
    """

    def __init__(self, url: str, *, pace: float, clients: int = 4, seed: int = 1) -> None:
        self.done: Counter[str] = Counter()
        self.unexpected: list[str] = []
        super().__init__(
            [_Worker(self, url, seed * 1000 + number, pace / clients).run for number in range(clients)]
        )

    def fail(self, text: str) -> None:
        """Notes an answer that should not have been."""
        if len(self.unexpected) < 20:
            self.unexpected.append(text)


class _Worker:
    """One client."""

    def __init__(self, load: MixedLoad, url: str, seed: int, pace: float) -> None:
        self._load = load
        self._client = Client(url, 60)
        self._random = random.Random(seed)
        self._name = f"c{seed}"
        self._interval = 1 / pace
        self._number = 0
        kinds = {
            self.put: 24,
            self.get: 36,
            self.part: 8,
            self.head: 6,
            self.listing: 8,
            self.walk: 2,
            self.remove: 5,
            self.batch: 2,
            self.upload: 1,
            self.download: 1,
            self.snapshot: 1,
            self.fork: 1,
            self.history: 2,
            self.copy: 2,
            self.health: 1,
        }
        self._kinds, self._weights = list(kinds), list(kinds.values())

    def run(self) -> None:
        """Works until the load ends."""
        due = time.monotonic()
        while not self._load.wait(max(0.0, due - time.monotonic())):
            due = max(due, time.monotonic() - 1) + self._interval * self._random.uniform(0.5, 1.5)
            work = self._random.choices(self._kinds, self._weights)[0]
            self._number += 1
            try:
                if self._number % RECONNECT == 0:
                    self._client.close()  # the next request makes a connection, perhaps to another worker
                work()
            except (OSError, AssertionError) as error:
                self._load.fail(f"{work.__name__}: {error!r}")
            self._load.done[work.__name__] += 1
        self._client.close()

    # Everything is read or written under names that other clients use too.

    def put(self) -> None:
        self._expect(self._client.put_file(self._path(), self._bytes(*SMALL_BYTES)), 200, 201)

    def get(self) -> None:
        self._expect(self._client.get(files(self._path())), 200, 404)

    def part(self) -> None:
        start = self._random.randrange(5000)
        answer = self._client.get(files(self._path()), {"Range": f"bytes={start}-{start + 500}"})
        self._expect(answer, 206, 404, 416)

    def head(self) -> None:
        self._expect(self._client.head(files(self._path())), 200, 404)

    def listing(self) -> None:
        self._expect(self._client.get(files(self._directory()), limit=50), 200, 404)

    def walk(self) -> None:
        self._expect(self._client.get(files("/soak"), depth=-1, glob="**/*7", limit=500), 200, 404)

    def remove(self) -> None:
        self._expect(self._client.delete(files(self._path())), 200, 404)

    def batch(self) -> None:
        operations = [
            {"op": "put", "path": self._path(), "content": "x" * self._random.randrange(2000)}
            for _ in range(10)
        ]
        self._expect(self._client.post("/files/batch", {"operations": operations}), 200)

    def upload(self) -> None:
        path = f"/soak-large/{self._name}/{self._random.randrange(4)}"
        self._expect(self._client.put_file(path, self._bytes(*LARGE_BYTES)), 200, 201)

    def download(self) -> None:
        path = f"/soak-large/{self._name}/{self._random.randrange(4)}"
        self._expect(self._client.get(files(path)), 200, 404)

    def snapshot(self) -> None:
        name = f"{self._name}-{self._number % KEPT}"
        self._expect(self._client.delete(f"/versions/snapshots/{name}"), 200, 404)
        self._expect(self._client.post("/versions/snapshots", {"name": name}), 200, 201)
        self._expect(self._client.get("/versions/snapshots"), 200)

    def fork(self) -> None:
        name = f"{self._name}-{self._number % KEPT}"
        self._expect(self._client.delete(f"/versions/forks/{name}"), 200, 404)
        self._expect(self._client.post("/versions/forks", {"name": name}), 200, 201)
        self._expect(self._client.put_file(self._path(), self._bytes(*SMALL_BYTES), fork=name), 200, 201)

    def history(self) -> None:
        self._expect(self._client.get("/versions/log", limit=20), 200)

    def copy(self) -> None:
        operation = {"op": "copy", "path": self._path(), "to": self._path()}
        self._expect(self._client.post("/files/batch", {"operations": [operation]}), 200, 400, 404, 409)

    def health(self) -> None:
        self._expect(self._client.get("/system/health"), 200)

    def _expect(self, answer: Response, *statuses: int) -> Any:
        if answer.status not in statuses:
            self._load.fail(f"{answer.status} {answer.body[:300]!r}")

    def _directory(self) -> str:
        return f"/soak/{self._random.randrange(DIRECTORIES)}"

    def _path(self) -> str:
        return f"{self._directory()}/{self._random.randrange(FILES)}"

    def _bytes(self, least: int, most: int) -> bytes:
        return self._random.randbytes(self._random.randrange(least, most))
