"""Streams of a real server with two workers and a background process, and clients in threads."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from svc_events.following import events_of_server

from svc.plugin import Database
from svc_client import Client
from svc_testing import Completed, Server, free_port, run_svc, start_server

from .listening import Listener, wait_for  # noqa: TID252

PLUGINS = (
    *("files", "versions", "users", "auth.self", "sharing", "query", "tasks", "task.gc"),
    *("events", "events.sse"),
)
OPTIONS = ("--workers", "2", "--background", "true", "--auth", "self-contained", "--graceful-timeout", "60")
"""What the servers are started with."""


class Service:
    """A server with root's token, and what tests do through it."""

    def __init__(self, server: Server, key: str | None = None) -> None:
        self.server = server
        found = [word for word in server.output.split() if word.startswith("svc_k_")]
        self.key = key or found[0]
        self.root = self.token(self.key)

    def token(self, key: str) -> str:
        answer = self.server.request(
            "POST", "/auth/token", body=json.dumps({"api_key": key}).encode(), headers=_JSON
        )
        assert answer.status == 200, answer.body
        token: str = answer.json()["token"]
        return token

    def send(self, method: str, path: str, value: Any = None, *, token: str | None = None) -> Any:
        headers = {"Authorization": f"Bearer {token or self.root}"}
        body = None
        if value is not None:
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            headers.update({} if isinstance(value, bytes) else _JSON)
        answer = self.server.request(method, path, body=body, headers=headers)
        assert answer.status < 300, (method, path, answer.status, answer.body)
        return answer.json()

    def put(self, path: str, content: bytes = b"x") -> None:
        self.send("PUT", f"/files{path}", content)

    def share(self, path: str, user: str) -> None:
        self.send("POST", "/files/share", {"paths": [path], "users": [user], "permissions": "-r------"})

    def listen(self, path: str = "/system/events", **options: Any) -> Listener:
        return Listener(self.server.url, path, **{"token": self.root, **options})

    def listeners_of_both_workers(self, path: str = "/system/events") -> list[Listener]:
        """Streams of two workers, known by what the ids of their requests begin with."""
        by_worker: dict[str, Listener] = {}
        for _ in range(200):
            made = self.listen(path)
            worker = made.headers["x-request-id"][:20]
            if worker in by_worker:
                made.close()
            else:
                by_worker[worker] = made
                made.until(lambda one: one.events)
            if len(by_worker) == 2:
                break
        assert len(by_worker) == 2
        return list(by_worker.values())

    def user(self, name: str) -> tuple[str, str]:
        """Makes a user with a key; returns id and token."""
        user_id = self.send("POST", "/system/users", {"username": name})["user_id"]
        made = self.send(
            "POST", "/auth/keys/admin", {"user_id": user_id, "label": name, "expires_in_days": 1}
        )
        return user_id, self.token(made["key"])


_JSON = {"Content-Type": "application/json"}
_ENTRIES = "events=entries_created,entries_deleted,gap"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One server for the tests of this module; each uses paths of its own."""
    path = tmp_path_factory.mktemp("served") / "served.svcdb"
    with start_server(path, *OPTIONS, plugins=PLUGINS) as server:
        yield Service(server)


def test_each_type_is_told_by_both_workers_whichever_took_the_write(service: Service) -> None:
    listeners = service.listeners_of_both_workers()
    try:
        for number in range(8):
            service.put(f"/kinds/{number}")
        service.send("DELETE", "/files/kinds/0")
        service.send("POST", "/versions/snapshots", {"name": "kinds"})
        service.send("PUT", "/files/kinds/.svc-config/indexes.json", {"indexes": []})
        user_id, _ = service.user("kinds")
        service.send(
            "POST", "/files/share", {"paths": ["/kinds/1"], "users": [user_id], "permissions": "-r------"}
        )
        task = service.send("POST", "/system/tasks/gc", {})
        expected = {
            *("entries_created", "entries_deleted", "versions_created", "indexes_changed", "files_shared"),
            *("permissions_changed", "tasks_started", "tasks_completed", "gc_started", "gc_completed"),
        }
        for one in listeners:
            one.until(lambda one: expected <= set(one.names))
        # The same events with the same ids.
        end = max(event["event_id"] for event in listeners[0].told)
        for one in listeners:
            one.until(lambda one: one.told[-1]["event_id"] >= end)
        first, second = ([event for event in one.told if event["event_id"] <= end] for one in listeners)
        assert first == second
        assert [event["event_id"] for event in first] == sorted({event["event_id"] for event in first})
        by_type = {event["event_type"]: event for event in first}
        done = [
            event["payload"]
            for event in first
            if event["event_type"] == "tasks_completed" and event["payload"]["id"] == task["id"]
        ]
        assert done == [service.send("GET", f"/system/tasks/{task['id']}")]
        assert by_type["gc_completed"]["payload"] == done[0]["result"]
        assert by_type["files_shared"]["recipient_user_id"] == user_id
        assert by_type["files_shared"]["payload"]["path"] == "/kinds/1"
    finally:
        for one in listeners:
            one.close()


def test_a_share_is_told_to_its_recipient_alone(service: Service) -> None:
    ann_id, ann = service.user("ann")
    _, bob = service.user("bob")
    service.put("/shared/file")
    with (
        service.listen("/events/me", token=None) as nobody,
        service.listen(f"/events/me?token={ann}", token=None) as own,
        service.listen("/events/me", token=bob) as other,
    ):
        assert nobody.status == 401
        own.until(lambda one: one.comments)
        other.until(lambda one: one.comments)
        service.send(
            "POST", "/files/share", {"paths": ["/shared/file"], "users": ["ann"], "permissions": "-r------"}
        )
        own.until(lambda one: one.events)
        (event,) = own.events
        assert event["event_type"] == "files_shared"
        assert event["recipient_user_id"] == ann_id
        assert event["payload"]["path"] == "/shared/file"
        assert other.events == []
    # The token of the address is in no log.
    assert ann not in service.server.errors
    assert ann.rpartition(".")[2] not in service.server.errors


def test_a_share_is_told_only_where_the_key_reaches_and_while_it_lasts(service: Service) -> None:
    user_id, token = service.user("erin")
    body = {"user_id": user_id, "rules": [{"/reached/**": "crudlify"}], "label": "narrow"}
    narrow = service.token(service.send("POST", "/auth/keys", body)["key"])
    service.put("/reached/file")
    service.put("/beyond/file")
    service.share("/reached/file", "erin")
    service.share("/beyond/file", "erin")

    def told(token: str) -> list[str]:
        with service.listen("/events/me?follow=false&last_event_id=0", token=token) as one:
            one.join()
            return [event["payload"]["path"] for event in one.told if event["event_type"] != "gap"]

    assert told(token) == ["/reached/file", "/beyond/file"]
    assert told(narrow) == ["/reached/file"]
    service.send("DELETE", "/files/shares", {"paths": ["/reached/file"], "users": ["erin"]})
    assert told(token) == ["/beyond/file"]
    assert told(narrow) == []


def test_a_grant_that_is_taken_back_ends_its_events_in_both_workers(service: Service) -> None:
    user_id, token = service.user("carol")
    body = {"path": "/taken", "group": f"user:{user_id}", "allow": "-r--l---"}
    grant_id = service.send("POST", "/system/grants", body)["grant_id"]
    listeners = [service.listen(token=token) for _ in range(6)]
    try:
        for one in listeners:
            one.until(lambda one: one.events)
        service.put("/taken/1")
        service.put("/hidden/1")
        for one in listeners:
            one.until(lambda one: one.paths)
        service.send("DELETE", f"/system/grants/{grant_id}")
        service.put("/taken/2")
        body = {"path": "/given", "group": f"user:{user_id}", "allow": "-r--l---"}
        service.send("POST", "/system/grants", body)
        service.put("/given/1")
        for one in listeners:
            one.until(lambda one: "/given/1" in one.paths)
            assert one.paths == ["/taken/1", "/given/1"]
            assert {event["event_type"] for event in one.told} <= {"entries_created", "permissions_changed"}
    finally:
        for one in listeners:
            one.close()


def test_a_user_who_is_deactivated_listens_no_more(service: Service) -> None:
    user_id, token = service.user("dave")
    with service.listen(token=token) as one, service.listen(token=token) as two:
        for listener in (one, two):
            listener.until(lambda listener: listener.events)
        service.send("DELETE", f"/system/users/{user_id}")
        for listener in (one, two):
            listener.join()
            assert listener.is_over


def test_a_client_that_leaves_frees_its_place(service: Service) -> None:
    service.send("PUT", "/system/plugins/events.sse/configuration", {"maximum_streams": 3})
    opened: list[Listener] = []

    def is_full() -> bool:
        made = service.listen()
        if made.status == 200:
            opened.append(made)
        else:
            made.close()
        # Three of each worker.
        return len(opened) == 6

    try:
        for _ in range(2):
            wait_for(is_full)
            refused = service.listen()
            assert refused.status == 503
            refused.close()
            while opened:
                opened.pop().close()
    finally:
        service.send("PUT", "/system/plugins/events.sse/configuration", {})


def test_one_who_reads_slowly_reads_it_all_later(service: Service) -> None:
    url = f"{service.server.url}/system/events?path_prefix=/slow/"
    authorization = f"Authorization: Bearer {service.root}"
    process = subprocess.Popen(
        ["curl", "-sN", "--limit-rate", "400k", "-H", authorization, url], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        process.stdout.readline()
        operations = [
            {"op": "put", "path": f"/slow/{number:05d}-{'x' * 200}", "content": "x"}
            for number in range(8_000)
        ]
        service.send("POST", "/files/batch", {"operations": operations})
        with service.listen("/system/events?path_prefix=/slow/last") as fast:
            fast.until(lambda one: one.events)
            service.put("/slow/last")
            # Nobody waits for the slow one.
            fast.until(lambda one: one.paths)
        seen: list[str] = []
        for line in process.stdout:
            if line.startswith(b"data: "):
                entries = json.loads(line[6:])["payload"].get("entries", ())
                seen += [entry["path"] for entry in entries]
            if "/slow/last" in seen:
                break
        assert seen == [*[operation["path"] for operation in operations], "/slow/last"]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_command_shows_what_a_server_streams(service: Service, tmp_path: Path) -> None:
    service.put("/command/1")
    variables = {"SVC_TOKEN": service.root}

    def run(*arguments: str) -> Completed:
        done = run_svc("events", *arguments, "--json", env=variables, cwd=tmp_path)
        assert done.exit_code == 0, done.stderr
        return done

    def told(done: Completed) -> list[Any]:
        # A test before this one has collected records, which who reads them anew is told of.
        events = map(json.loads, done.stdout.splitlines())
        return [event for event in events if event["event_type"] != "gap"]

    wanted = ("--path-prefix", "/command/")
    remote = told(run("--url", service.server.url, *wanted))
    assert [event["payload"] for event in remote] == [{"entries": [{"path": "/command/1"}]}]
    assert told(run("-D", str(service.server.database_path), *wanted)) == remote


def test_a_stop_does_not_wait_for_streams(tmp_path: Path) -> None:
    with start_server(tmp_path / "stopped.svcdb", *OPTIONS, plugins=PLUGINS) as server:
        service = Service(server)
        listeners = [service.listen() for _ in range(50)]
        for one in listeners:
            one.until(lambda one: one.events)
        began = time.monotonic()
        assert server.stop() == 0
        # Well below the time that the server gives to requests which do not end.
        assert time.monotonic() - began < 15
        for one in listeners:
            one.join()
            assert one.is_over
            one.close()


def test_a_program_that_follows_goes_on_over_a_restart(tmp_path: Path) -> None:
    port = free_port()
    options = ("--port", str(port), "--workers", "2")
    plugins = ("files", "events", "events.sse")
    seen: list[str] = []
    begun, over = threading.Event(), threading.Event()

    def follow() -> None:
        with Client(f"http://127.0.0.1:{port}") as client:
            for event in events_of_server(client):
                begun.set()
                seen.extend(entry["path"] for entry in event.payload.get("entries", ()))
                if "/last" in seen:
                    break
        over.set()

    with start_server(tmp_path / "on.svcdb", *options, plugins=plugins) as server:
        threading.Thread(target=follow, daemon=True).start()
        assert begun.wait(60)
        server.request("PUT", "/files/first", body=b"x")
        wait_for(lambda: seen)
        server.kill()
    with Database(tmp_path / "on.svcdb") as database, database.transaction() as changes:
        changes.put(("between",), b"x")
    with start_server(tmp_path / "on.svcdb", *options, plugins=plugins) as server:
        server.request("PUT", "/files/last", body=b"x")
        assert over.wait(60)
    assert seen == ["/first", "/between", "/last"]


def test_nothing_is_lost_or_doubled_over_kills_and_lost_connections(tmp_path: Path) -> None:
    """Writers and readers for some seconds, a kill of everything in between; then compare with the log."""
    path = tmp_path / "killed.svcdb"
    stop = threading.Event()
    collected: dict[int, list[dict[str, Any]]] = {number: [] for number in range(3)}
    present: list[Service] = []

    def read(number: int) -> None:
        last = "0"
        while not stop.is_set():
            try:
                with present[0].listen(f"/system/events?{_ENTRIES}", last=last) as one:
                    until = time.monotonic() + 0.3 * (number + 1)
                    while time.monotonic() < until and not stop.is_set():
                        time.sleep(0.02)
                # After the end, so that nothing of it is still under way.
                collected[number] += one.told
                last = one.told[-1]["event_id"] if one.told else last
            except (OSError, AssertionError):
                time.sleep(0.1)

    def write(number: int) -> None:
        count = 0
        while not stop.is_set():
            count += 1
            try:
                present[0].put(f"/w{number}/{count % 50}")
                if count % 3 == 0:
                    present[0].send("DELETE", f"/files/w{number}/{count % 50}")
            except (OSError, AssertionError):
                time.sleep(0.1)

    threads = [threading.Thread(target=read, args=(number,)) for number in collected]
    threads += [threading.Thread(target=write, args=(number,)) for number in range(3)]
    with start_server(path, *OPTIONS, plugins=PLUGINS) as server:
        present.append(Service(server))
        key = present[0].key
        for thread in threads:
            thread.start()
        time.sleep(2.5)
        server.kill()
    with start_server(path, *OPTIONS, plugins=PLUGINS) as server:
        present[0] = Service(server, key)
        time.sleep(2.5)
        stop.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        with Database(path, read_only=True) as database:
            expected = [
                (commit.sequence, change.kind, change.path)
                for commit in database.commits()
                for record in commit.transactions
                for change in record.changes
                if not change.system and change.kind in ("put", "delete")
            ]
        assert len(expected) > 50
        kinds = {"entries_created": "put", "entries_deleted": "delete"}
        for number, read_before in collected.items():
            events = read_before
            last = events[-1]["event_id"] if events else "0"
            with present[0].listen(f"/system/events?follow=false&{_ENTRIES}", last=last) as one:
                one.join()
            events = [*read_before, *one.told]
            assert [event for event in events if event["event_type"] == "gap"] == []
            ids = [event["event_id"] for event in events]
            assert ids == sorted(set(ids)), f"reader {number} has something twice"
            found = {
                (int(event["event_id"].partition(".")[0]), kinds[event["event_type"]], entry["path"])
                for event in events
                for entry in event["payload"]["entries"]
            }
            assert found == {(sequence, kind, "/" + "/".join(path)) for sequence, kind, path in expected}
