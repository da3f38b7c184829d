"""Many event streams at once, while files are stored and all workers are killed: each client has every event
that it may see, in order, once.

A short run has 100 clients, ``-e crash`` a thousand or so. ``SVC_TEST_STREAMS=5000`` has that many, and
``SVC_TEST_STREAMS_RATE`` and ``SVC_TEST_STREAMS_SECONDS`` say how many writes a second and for how long; what
was reached is printed.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crash.clients import children, resident_bytes
from crash.scale import scaled
from svc.database import Database
from svc_testing import Server, start_server

COUNT = int(os.environ.get("SVC_TEST_STREAMS") or scaled(100, most=5_000))
RATE = float(os.environ.get("SVC_TEST_STREAMS_RATE", "100"))
SECONDS = float(os.environ.get("SVC_TEST_STREAMS_SECONDS") or scaled(3, most=60))
PLUGINS = ("files", "users", "auth.self", "events", "events.sse")
OPTIONS = ("--workers", "2", "--auth", "self-contained", "--background", "true")
DIRECTORIES = 4
WRITERS = 16
PROCESSES = 2
PATIENCE_S = 3000.0
PROGRAM = Path(__file__).with_name("stream_clients.py")
JSON = {"Content-Type": "application/json"}

Sees = Callable[[str, str], bool]


class Kind:
    """Clients of one kind: whose token they have, what they ask for, and what they shall get."""

    def __init__(self, token: str, query: str, sees: Sees, *, prefix: str = "", until: str = 'end"') -> None:
        self.token = token
        self.prefix = prefix
        self.until = until
        self.path = f"/system/events?{query}&path_prefix={prefix}"
        self.sees = sees


class Service:
    """A server with root's token."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.root = ""
        (key,) = [word for word in server.output.split() if word.startswith("svc_k_")]
        self.root = self.token(key)

    def token(self, key: str) -> str:
        return str(self.send("POST", "/auth/token", {"api_key": key})["token"])

    def send(self, method: str, path: str, value: Any) -> Any:
        headers = {**JSON, **({"Authorization": f"Bearer {self.root}"} if self.root else {})}
        content = json.dumps(value).encode()
        answer = self.server.request(method, path, body=content, headers=headers, timeout=PATIENCE_S)
        assert answer.status < 300, (method, path, answer)
        return answer.json()

    def user(self, name: str, path: str) -> str:
        """The token of a new user who may read what lies below a path."""
        user_id = self.send("POST", "/system/users", {"username": name})["user_id"]
        grant = {"path": path, "group": f"user:{user_id}", "allow": "-r--l---"}
        self.send("POST", "/system/grants", grant)
        return self.token(self.send("POST", "/auth/keys/admin", {"user_id": user_id})["key"])

    def kinds(self) -> list[Kind]:
        """Root without a filter, one user for each directory, a prefix, and two filters of types."""
        found = [Kind(self.root, "", lambda _name, _path: True)]
        for number in range(DIRECTORIES):
            token = self.user(f"user{number}", f"/d{number}")
            found.append(Kind(token, "", _below(f"/d{number}/")))
        found.append(Kind(self.root, "", lambda _name, _path: True, prefix="/d1/"))
        for name, until in (("entries_created", 'end"'), ("entries_deleted", '/over"')):
            sees: Sees = lambda given, _path, name=name: given == name  # noqa: E731
            found.append(Kind(self.root, f"events={name}", sees, until=until))
        token = self.user("both", "/d2")
        query = "events=entries_created,entries_deleted"
        found.append(Kind(token, query, _below("/d2/"), prefix="/d2/a"))
        return found


def _below(prefix: str) -> Sees:
    return lambda _name, path: path.startswith(prefix)


class Writers:
    """Store files, and delete some, at a rate, until they are told to stop; over restarts.

    Attributes:
        answered: how many writes were answered well.
    """

    def __init__(self, service: Service, rate: float) -> None:
        self._port = int(service.server.url.rpartition(":")[2])
        self._headers = {"Authorization": f"Bearer {service.root}"}
        self._pause = WRITERS / rate
        self._stop = threading.Event()
        self.answered = 0
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(WRITERS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        due = time.monotonic() + self._pause * number / WRITERS
        count = 0
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due = max(due + self._pause, time.monotonic() - 1)
            path = f"/files/d{count % DIRECTORIES}/{'ab'[number % 2]}{number}-{count % 100}"
            method = "PUT" if count % 200 < 100 else "DELETE"
            count += 1
            try:
                connection.request(method, path, b"x" if method == "PUT" else None, self._headers)
                answer = connection.getresponse()
                answer.read()
                self.answered += answer.status < 300
            except (OSError, http.client.HTTPException):
                connection.close()
        connection.close()


class Listeners:
    """The clients, in a few processes."""

    def __init__(self, service: Service, kinds: list[Kind], count: int, last: str) -> None:
        self._processes = []
        port = int(service.server.url.rpartition(":")[2])
        told = [{"path": kind.path, "token": kind.token, "last": last, "until": kind.until} for kind in kinds]
        for number in range(PROCESSES):
            process = subprocess.Popen(
                [sys.executable, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            clients = [one % len(kinds) for one in range(number, count, PROCESSES)]
            # Each process has a first of each kind.
            clients = [*range(len(kinds)), *clients[len(kinds) :]]
            assert process.stdin is not None
            process.stdin.write(json.dumps({"port": port, "clients": clients, "kinds": told}) + "\n")
            process.stdin.flush()
            self._processes.append(process)

    def await_all(self, word: str) -> list[dict[str, Any]]:
        """What each process says when its clients have come so far."""
        found = []
        for process in self._processes:
            assert process.stdout is not None
            found.append(json.loads(process.stdout.readline()))
            assert found[-1]["word"] == word
        return found

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


@contextlib.contextmanager
def many_descriptors() -> Iterator[None]:
    """The server inherits the limit."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))


@pytest.mark.timeout(PATIENCE_S)
def test_each_of_many_clients_has_each_event_once_over_a_kill_of_all_workers(tmp_path: Path) -> None:
    path = tmp_path / "many.svcdb"
    with many_descriptors(), start_server(path, *OPTIONS, plugins=PLUGINS) as server:
        service = Service(server)
        kinds = service.kinds()
        workers = [pid for pid in children(server.process.pid) if is_worker(pid)]
        empty = [resident_bytes(pid) for pid in workers]
        service.send("POST", "/files/batch", {"operations": [{"op": "put", "path": "/over", "content": "x"}]})
        begun = end_of(path)
        listeners = Listeners(service, kinds, COUNT, f"{begun:012d}.999999")
        try:
            listeners.await_all("listening")
            grown = [resident_bytes(pid) for pid in workers]
            writers = Writers(service, RATE)
            began = time.monotonic()
            writers.start()
            time.sleep(SECONDS / 2)
            before = writers.answered
            halfway = time.monotonic() - began
            assert len(workers) == 2
            for pid in workers:
                os.kill(pid, signal.SIGKILL)
            time.sleep(SECONDS / 2)
            writers.stop()
            written = time.monotonic() - began
            operations = [
                {"op": "put", "path": f"/d{number}/{name}end", "content": "end"}
                for number in range(DIRECTORIES)
                for name in ("", "a")
            ]
            operations.append({"op": "delete", "path": "/over"})
            service.send("POST", "/files/batch", {"operations": operations})
            reports = listeners.await_all("done")
            seconds = time.monotonic() - began
        finally:
            listeners.close()
    check(path, begun, kinds, reports)
    frames, entries = (sum(report[name] for report in reports) for name in ("count", "entries"))
    print(
        f"\n{COUNT} clients: {(sum(grown) - sum(empty)) / COUNT / 1024:.1f} KiB each; "
        f"{before / halfway:.0f} writes/s up to the kill, {writers.answered / written:.0f} in all; "
        f"{frames} frames with {entries} entries, "
        f"{frames / seconds:.0f} and {entries / seconds:.0f} a second; "
        f"the last was there {seconds - written:.1f} s after the last write"
    )


def is_worker(pid: int) -> bool:
    """Whether a process serves: the background process does not listen."""
    return any("socket:" in os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir())


def end_of(path: Path) -> int:
    with Database(path, read_only=True) as database:
        return database.head().sequence


def check(path: Path, begun: int, kinds: list[Kind], reports: list[dict[str, Any]]) -> None:
    """What was delivered against what the log has."""
    names = {"put": "entries_created", "delete": "entries_deleted"}
    with Database(path, read_only=True) as database:
        changes = [
            (commit.sequence, names[change.kind], "/" + "/".join(change.path))
            for commit in database.commits(begun)
            for record in commit.transactions
            for change in record.changes
            if not change.system
        ]
    assert len(changes) > 20
    for report in reports:
        assert report["others"] == []
        assert report["begun"][0] >= 2, "each has come back"
        for number, kind in enumerate(kinds):
            frames = report["kept"][str(number)].split("\n\n")
            events = [json.loads(frame.partition("\ndata: ")[2]) for frame in frames]
            ids = [event["event_id"] for event in events]
            assert ids == sorted(set(ids))
            found = [
                (int(event["event_id"].partition(".")[0]), event["event_type"], entry["path"])
                for event in events
                for entry in event["payload"]["entries"]
            ]
            seen = {change for change in changes if kind.sees(change[1], change[2])}
            assert len(found) == len(set(found))
            assert set(found) <= seen
            # An event with a path that begins so is delivered with all that may be seen of it.
            assert {change for change in seen if change[2].startswith(kind.prefix)} <= set(found)
            assert all(kind.prefix in json.dumps(event["payload"]) for event in events)
