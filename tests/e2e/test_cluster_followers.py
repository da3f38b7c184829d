"""What follows the log of three nodes: events, webhooks, histories and schedules know who did what where."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from svc_testing import Server, free_port, run_svc, start_server

PLUGINS = (
    *("auth.disabled", "auth.self", "users", "files", "versions", "history", "metrics", "tasks", "task.gc"),
    *("events", "events.sse", "events.webhook", "sync", "sync.http"),
)
OPTIONS = (
    *("--background", "true", "--auth", "disabled", "--host", "127.0.0.1"),
    *("--plugin-option", "sync.interval_seconds=1", "--plugin-option", "sync.takeover_seconds=4"),
    *("--plugin-option", "events.webhook.allow_private=true"),
    *("--plugin-option", "events.webhook.allow_any_port=true"),
)


def start(directory: Path, name: str, port: int) -> Any:
    address = f"http://127.0.0.1:{port}"
    return start_server(
        directory / f"{name}.svcdb",
        *OPTIONS,
        *("--port", str(port), "--cluster-address", address, "--cluster-label", name),
        plugins=PLUGINS,
    )


def ask(server: Server, method: str, path: str, body: Any = None) -> Any:
    payload = None if body is None else json.dumps(body).encode()
    answer = server.request(method, path, body=payload, headers={"Content-Type": "application/json"})
    assert answer.status in (200, 201, 202), (method, path, answer)
    return answer.json()


def node_id(server: Server) -> int:
    found: int = ask(server, "GET", "/sync/status")["node_id"]
    return found


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    directory = tmp_path_factory.mktemp("three")
    with ExitStack() as stack:
        servers = [stack.enter_context(start(directory, name, free_port())) for name in "abc"]
        for one in servers[1:]:
            ask(one, "POST", "/sync/enter", {"address": servers[0].url})
            wait_until(lambda one=one: not ask(one, "GET", "/sync/status")["is_copying"], "the first copy")
        wait_until(lambda: all(is_active(one) for one in servers), "all have met")
        yield servers


def is_active(server: Server) -> bool:
    peers = ask(server, "GET", "/sync/peers")
    return len(peers) == 2 and all(one["state"] == "Active" for one in peers)


@contextmanager
def stream(server: Server, names: str, since: str | None = None) -> Iterator[Iterator[dict[str, Any]]]:
    """The events of a server as they come."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
    headers = {"Last-Event-ID": since} if since else {}
    connection.request("GET", f"/system/events?events={names}", headers=headers)
    response = connection.getresponse()
    lines = iter(response.readline, b"")
    try:
        yield (json.loads(line[5:]) for line in lines if line.startswith(b"data:"))
    finally:
        connection.close()


def event_of(server: Server, path: str) -> dict[str, Any]:
    """The entry of the first event that tells of a path."""
    with stream(server, "entries_created", since="000000000001.000000") as told:
        for event in told:
            for entry in event["payload"]["entries"]:
                if entry["path"] == path:
                    return dict(entry)
    raise AssertionError("the stream has ended")


def heartbeat_of(server: Server) -> dict[str, Any]:
    with stream(server, "heartbeat") as told:
        return dict(next(told)["payload"])


@contextmanager
def receiving() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A receiver of webhooks: its URL, and what has arrived."""
    arrived: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            arrived.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_words: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", arrived
    finally:
        server.shutdown()
        server.server_close()


def test_a_change_is_of_its_node_wherever_it_is_followed(three: list[Server]) -> None:
    a, b, c = three
    assert (
        a.request("PUT", "/files/far.txt", body=b"one\n", headers={"Content-Type": "text/plain"}).status
        == 201
    )
    wait_until(
        lambda: all(one.request("GET", "/files/far.txt").status == 200 for one in three), "all have it"
    )
    ids = [node_id(one) for one in three]
    for server in (b, c):
        [row] = ask(server, "GET", "/versions/history/far.txt?commits=true")["history"]
        assert row["origin"]["node_id"] == ids[0]
        assert ask(server, "GET", "/versions/log?path=/far.txt")["commits"][0]["origin"] == row["origin"]
        assert ask(server, "GET", "/versions/blame/far.txt")["lines"][0]["origin"] == row["origin"]
        for words in (("log", "/far.txt"), ("history", "/far.txt", "--commits"), ("blame", "/far.txt")):
            done = run_svc(*words, "-D", server.url)
            assert f"@{ids[0]}" in done.stdout, done
        told = event_of(server, "/far.txt")
        assert told["origin"] == {**row["origin"], "user_id": row["user"]}
    [own] = ask(a, "GET", "/versions/history/far.txt?commits=true")["history"]
    assert "origin" not in own
    assert heartbeat_of(c)["node_id"] == ids[2]


def test_a_webhook_is_called_by_the_node_that_is_named(three: list[Server]) -> None:
    a, b, c = three
    with receiving() as (url, arrived):
        ask(a, "POST", "/system/webhooks", {"id": "one", "url": url, "events": ["entries_created"]})
        for one in three:
            wait_until(lambda one=one: place_of(one) is not None, "each node delivers")
        settings = {"node_id": node_id(b), "allow_private": True, "allow_any_port": True}
        ask(c, "PUT", "/system/plugins/events.webhook/configuration", settings)
        for one in (a, c):
            wait_until(lambda one=one: place_of(one) is None, "it delivers no more")
        wait_until(lambda: place_of(b) is not None, "the named node delivers")
        for number, server in enumerate(three):
            assert server.request("PUT", f"/files/w/{number}.txt", body=b"x").status == 201
        wait_until(lambda: told(arrived).keys() == {f"/w/{number}.txt" for number in range(3)}, "all arrived")
        exchange(three)
        assert told(arrived) == {
            "/w/0.txt": [node_id(a)],
            "/w/1.txt": [None],
            "/w/2.txt": [node_id(c)],
        }, "none is told twice, and each with where it was written"


def place_of(server: Server) -> str | None:
    """Where the webhook of a node stands; None: the node does not deliver to it."""
    shown = ask(server, "GET", "/system/webhooks")["webhooks"]
    return shown[0]["place"] if shown else None


def told(arrived: list[dict[str, Any]]) -> dict[str, list[int | None]]:
    """For each file, the nodes that events name, each event once."""
    found: dict[str, list[int | None]] = {}
    for event in {one["event_id"]: one for one in arrived}.values():
        for entry in event["payload"]["entries"]:
            if entry["path"].startswith("/w/"):
                found.setdefault(entry["path"], []).append(entry.get("origin", {}).get("node_id"))
    return found


def exchange(servers: list[Server]) -> None:
    """Exchanges everything, until all agree."""
    for server in servers:
        ask(server, "POST", "/sync/trigger")
    heads = "all agree"
    wait_until(lambda: len({ask(one, "GET", "/sync/status")["head"] for one in servers}) == 1, heads)


def test_one_node_runs_a_schedule_and_another_takes_over(three: list[Server]) -> None:
    ids = {node_id(one): one for one in three}
    first, second, third = (ids[one] for one in sorted(ids))
    done = run_svc("cron", "add", "nightly", "gc", "0 3 * * *", "--one-node", "-D", third.url)
    assert done.exit_code == 0, done
    for one in three:
        wait_until(lambda one=one: ask(one, "GET", "/system/cron")["schedules"] != [], "it is there")
    assert [runs_here(one) for one in (first, second, third)] == [True, False, False]
    listed = run_svc("cron", "list", "-D", third.url).stdout
    assert "on another node" in listed
    # A task that somebody asks for runs where it was asked for, and nowhere else.
    task = ask(third, "POST", "/system/tasks/gc", {})
    wait_until(lambda: ask(third, "GET", f"/system/tasks/{task['id']}")["status"] == "completed", "it ran")
    exchange(three)
    assert task["id"] not in [one["id"] for one in ask(first, "GET", "/system/tasks")["tasks"]]
    watched = run_svc("sync", "status", "--watch", "--count", "2", "--interval", "0.2", "-D", third.url)
    assert watched.stdout.count(f"once     node {min(ids)} runs schedules of one node") == 2, watched
    stats = ask(third, "GET", "/system/stats")["sync"]
    assert (stats["members"], stats["active"], stats["absent"]) == (3, 2, [])
    assert stats["received_bytes"] > 0
    first.stop()
    wait_until(lambda: runs_here(second), "the next has taken over")
    assert not runs_here(third)


def runs_here(server: Server) -> bool:
    [schedule] = ask(server, "GET", "/system/cron")["schedules"]
    return bool(schedule["runs_here"])
