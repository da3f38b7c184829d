"""HTTP clients that keep journals: threads that store, replace, remove, rename and batch until told to stop.

A server's URL flows in; journals of what was acknowledged flow out, and every status that was not expected.
A client whose connection is cut does not know what became of its last change: it goes on only when a later
write has been acknowledged, which settles all before it, and then looks.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from crash.journal import Journal, digest
from svc_blackbox.client import Client, Response, files

__all__ = ["JournalingClient", "Load", "check_server", "children", "read_directory", "resident_bytes"]

NAMES = [f"{folder}/{number}" for folder in ("a", "b", "c") for number in range(4)]
DOCUMENT = "document.json"
MARK = "mark"
CUT = (OSError, http.client.HTTPException)
FULL = 507
REFUSALS = (503, FULL)


class Refused(Exception):
    """The server answered that it did not, or could not tell."""


class JournalingClient:
    """One client, with a directory of its own.

    Args:
        name: of its directory.
        seed: of its choices.
        reads: the part of its requests that only read, and compare.
    """

    def __init__(self, name: str, seed: int, reads: float = 0.2) -> None:
        self.journal = Journal(name)
        self.chance = random.Random(f"{name} {seed}")
        self.reads = reads
        self.statuses: Counter[int] = Counter()
        self.cuts = 0
        self._document: dict[str, int] = {}
        self._marks = 0

    def work(self, url: str, stop: threading.Event, *, reconnect: bool) -> None:
        """Works until it is told to stop; without ``reconnect``, until the connection is cut."""
        client = Client(url)
        while not stop.is_set():
            try:
                if self.journal.under_way is not None:
                    self._find_out(client)
                else:
                    self._step(client)
            except (*CUT, Refused) as error:
                self.cuts += not isinstance(error, Refused)
                if not reconnect:
                    break
                stop.wait(0.02)
        client.close()

    def settle(self, client: Client) -> None:
        """Finds out what became of the last change; the server must answer."""
        if self.journal.under_way is not None:
            self._find_out(client)

    def _find_out(self, client: Client) -> None:
        """After a write that was acknowledged later, all before it is decided."""
        self._marks += 1
        mark = b"%d" % self._marks
        response = client.put_file(f"{self.journal.name}/{MARK}", mark)
        self._expect(response, 200, 201)
        found = read_directory(client, self.journal.name)
        assert found.pop(MARK) == digest(mark)
        # Before anything is settled: where the connection is cut here, all of this is done again.
        document = self._stored_document(client) if DOCUMENT in found else {}
        earlier = self.journal.acknowledged.pop(MARK, None)
        assert earlier is None or self.journal.under_way is not None
        self.journal.settle(found)
        self.journal.acknowledged[MARK] = digest(mark)
        self._document = document

    def _stored_document(self, client: Client) -> dict[str, int]:
        document: dict[str, int] = json.loads(client.read(f"{self.journal.name}/{DOCUMENT}"))
        return document

    def _step(self, client: Client) -> None:
        chance = self.chance
        if chance.random() < self.reads:
            self._read(client)
            return
        present = sorted(set(self.journal.acknowledged) - {DOCUMENT, MARK})
        free = [name for name in NAMES if name not in present]
        kind = chance.random()
        if kind < 0.15 and present:
            self._delete(client, chance.choice(present))
        elif kind < 0.3 and present and free:
            self._rename(client, chance.choice(present), chance.choice(free))
        elif kind < 0.4:
            self._merge(client)
        elif kind < 0.6:
            self._batch(client, present, free)
        else:
            self._put(client, chance.choice(NAMES))

    def _read(self, client: Client) -> None:
        path = self.chance.choice(NAMES)
        response = client.get(files(f"{self.journal.name}/{path}"))
        expected = self.journal.acknowledged.get(path)
        self._expect(response, 404 if expected is None else 200)
        assert expected is None or digest(response.body) == expected, f"{path} reads back as other bytes"

    def _put(self, client: Client, path: str) -> None:
        content = self.chance.randbytes(self.chance.choice((10, 10, 1000, 5000, 90_000, 400_000)))
        self.journal.begin({path: digest(content)})
        self._take(client.put_file(f"{self.journal.name}/{path}", content), 200, 201)

    def _delete(self, client: Client, path: str) -> None:
        self.journal.begin({path: None})
        self._take(client.delete(files(f"{self.journal.name}/{path}")), 200)

    def _rename(self, client: Client, source: str, destination: str) -> None:
        self.journal.begin({source: None, destination: self.journal.acknowledged[source]})
        target = files(f"{self.journal.name}/{source}")
        body = {"to": f"/{self.journal.name}/{destination}"}
        self._take(client.send_json("PATCH", target, body), 200)

    def _merge(self, client: Client) -> None:
        patch = {self.chance.choice("abcdef"): self.chance.randrange(1000)}
        merged = {**self._document, **patch}
        self.journal.begin({DOCUMENT: digest(json.dumps(merged, separators=(",", ":")).encode())})
        response = client.send_json(
            "PATCH",
            files(f"{self.journal.name}/{DOCUMENT}"),
            patch,
            {"Content-Type": "application/merge-patch+json"},
        )
        self._take(response, 200, 201)
        self._document = merged

    def _batch(self, client: Client, present: list[str], free: list[str]) -> None:
        chance = self.chance
        paths = chance.sample(NAMES, chance.randint(2, 5))
        change: dict[str, str | None] = {}
        operations: list[dict[str, object]] = []
        for path in paths:
            full = f"/{self.journal.name}/{path}"
            destination = next((name for name in free if name not in change and name not in paths), None)
            if path in present and chance.random() < 0.3:
                operations.append({"op": "delete", "path": full})
                change[path] = None
            elif path in present and destination is not None and chance.random() < 0.3:
                operations.append({"op": "move", "from": full, "to": f"/{self.journal.name}/{destination}"})
                change |= {path: None, destination: self.journal.acknowledged[path]}
            else:
                content = chance.randbytes(chance.choice((5, 500, 20_000)))
                encoded = base64.b64encode(content).decode()
                operations.append({"op": "put", "path": full, "content_base64": encoded})
                change[path] = digest(content)
        self.journal.begin(change)
        self._take(client.post("/files/batch", {"operations": operations}), 200)

    def _take(self, response: Response, *expected: int) -> None:
        if response.status == FULL:
            # Nothing of it may ever be seen.
            self.journal.refuse()
        self._expect(response, *expected)
        self.journal.acknowledge()

    def _expect(self, response: Response, *expected: int) -> None:
        self.statuses[response.status] += 1
        if response.status in REFUSALS:
            raise Refused(response.body)
        assert response.status in expected, (response.status, response.body[:500])


class Load:
    """Many clients at work at once.

    Args:
        clients: who works.
        reconnect: whether they go on when a connection is cut.
    """

    def __init__(self, clients: Iterable[JournalingClient], *, reconnect: bool) -> None:
        self.clients = list(clients)
        self.failures: list[BaseException] = []
        self._reconnect = reconnect
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, url: str) -> None:
        """Sends them to work."""
        self._stop.clear()
        self._threads = [
            threading.Thread(target=self._work, args=(client, url), daemon=True) for client in self.clients
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Tells them to end, and fails where one of them saw what must not be."""
        self._stop.set()
        for thread in self._threads:
            thread.join(90)
            assert not thread.is_alive(), "a client hangs"
        if self.failures:
            raise self.failures[0]

    @property
    def answers(self) -> int:
        """Changes that were acknowledged so far."""
        return sum(client.journal.answers for client in self.clients)

    @property
    def statuses(self) -> Counter[int]:
        """Answers by status."""
        return sum((client.statuses for client in self.clients), Counter())

    def wait_for_answers(self, count: int, seconds: float = 60) -> None:
        """Waits until so many more changes were acknowledged."""
        target = self.answers + count
        deadline = time.monotonic() + seconds
        while self.answers < target and not self.failures:
            assert time.monotonic() < deadline, f"{self.answers} of {target} answers: {self.statuses}"
            time.sleep(0.005)
        if self.failures:
            raise self.failures[0]

    def _work(self, client: JournalingClient, url: str) -> None:
        try:
            client.work(url, self._stop, reconnect=self._reconnect)
        except BaseException as error:
            error.add_note(f"client {client.journal.name}")
            self.failures.append(error)
            self._stop.set()


def read_directory(client: Client, name: str) -> dict[str, str]:
    """Reads every file of a client's directory, byte for byte; returns path to digest."""
    response = client.get(files(name), depth=-1, limit=1000)
    if response.status == 404:
        return {}
    assert response.status == 200, (response.status, response.body[:500])
    listing = response.json()
    assert not listing["has_more"]
    found = {}
    for item in listing["items"]:
        content = client.read(item["path"])
        assert digest(content) == item["hash"]
        found[item["path"].removeprefix(f"/{name}/")] = item["hash"]
    return found


def check_server(client: Client, clients: Iterable[JournalingClient]) -> None:
    """Everything acknowledged is there, byte for byte, and nothing is half done; unknown outcomes settle."""
    for one in clients:
        one.settle(client)
        one.journal.check(read_directory(client, one.journal.name))


def children(pid: int) -> list[int]:
    """The processes that a process has started and that live."""
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def resident_bytes(pid: int) -> int:
    """Memory of a process, in bytes; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
