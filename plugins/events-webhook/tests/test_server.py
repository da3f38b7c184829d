"""Webhooks of a real server: signed, in order and at least once, whatever is killed or a receiver does."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook as Verifier
from svc_events.testing.sinks import wait_for

from svc_cli.processes.registration import registered_processes
from svc_testing import Server, run_svc, start_server

from .conftest import Receiver, receiving, reply  # noqa: TID252

IS_LONG = float(os.environ.get("SVC_TEST_CRASH_SCALE", "1")) > 1
KILLS = 50 if IS_LONG else 3
PATIENCE_S = 900.0 if IS_LONG else 60.0
PLUGINS = ("files", "users", "events", "events.webhook")
LOCAL = (
    *("--plugin-option", "events.webhook.allow_private=true"),
    *("--plugin-option", "events.webhook.allow_any_port=true"),
    *("--plugin-option", "events.webhook.timeout_seconds=1"),
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with start_server(tmp_path / "x.svcdb", *LOCAL, "--background", "true", plugins=PLUGINS) as running:
        yield running


def add(server: Server, url: str, webhook_id: str, **members: Any) -> dict[str, Any]:
    body = json.dumps({"url": url, "id": webhook_id, **members}).encode()
    answer = server.request(
        "POST", "/system/webhooks", body=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status == 201, answer
    made: dict[str, Any] = answer.json()
    return made


def paths(receiver: Receiver) -> list[str]:
    """The paths of files that were told of and taken, each event once, in the order of its first arrival."""
    first = {request.headers["webhook-id"]: request.body for request in reversed(receiver.requests)}
    events = (json.loads(first[event_id]) for event_id in dict.fromkeys(receiver.ids))
    named = (entry["path"] for event in events for entry in event["payload"].get("entries", ()))
    return [path for path in named if not path.startswith("/.config")]


def background_process(server: Server) -> int | None:
    """The process that delivers."""
    processes = registered_processes(Path(f"{server.database_path}.d"))
    return next((one.pid for one in processes if one.kind == "background"), None)


def next_background_process(server: Server, before: int | None) -> int:
    """The one that has taken the place of another."""
    found: list[int] = []

    def is_there() -> bool:
        process = background_process(server)
        found[:] = [] if process in (None, before) else [process]
        return bool(found)

    wait_for(is_there, "there is another one")
    return found[0]


def test_all_of_it_by_the_shell(server: Server, receiver: Receiver) -> None:
    receiver.answer = lambda handler: reply(handler, 200, b"thanks")

    def svc(*words: str, code: int = 0) -> Any:
        done = run_svc("webhook", *words, "--json", "-D", server.url)
        assert done.exit_code == code, done
        return json.loads(done.stdout) if done.stdout else None

    made = svc("add", receiver.url, "--id", "one", "--type", "entries_created")
    tested = svc("test", "one")
    assert (tested["status"], tested["answer"]) == (200, "thanks")
    assert server.request("PUT", "/files/a.txt", body=b"x").status == 201
    wait_for(lambda: paths(receiver) == ["/a.txt"], "the event has arrived")
    assert len(receiver.requests) == 2, "that of the test came before it, and nothing else"
    for request in receiver.requests:
        Verifier(made["secret"]).verify(request.body, request.headers)
    rotated = svc("rotate", "one")
    numbers = itertools.count()

    def is_signed_twice() -> bool:
        server.request("PUT", f"/files/{next(numbers)}.txt", body=b"x")
        return " " in receiver.requests[-1].headers["webhook-signature"]

    wait_for(is_signed_twice, "the new secret is used")
    wait_for(lambda: svc("list")[0]["commits_behind"] == 0, "all is delivered")
    Verifier(made["secret"]).verify(receiver.requests[-1].body, receiver.requests[-1].headers)
    Verifier(rotated["secret"]).verify(receiver.requests[-1].body, receiver.requests[-1].headers)
    tries = svc("deliveries", "one")
    assert {one["event_type"] for one in tries} == {"entries_created"}
    before = len(receiver.requests)
    svc("retry", "one", "--since", tries[-1]["event_id"])
    wait_for(lambda: len(receiver.requests) == before + len(tries) - 1, "all behind it came again")
    svc("disable", "one")
    svc("test", "none", code=3)
    svc("remove", "one")
    assert svc("list") == []
    for secret in (made["secret"], rotated["secret"]):
        assert secret not in server.output + server.errors


@pytest.mark.timeout(4000)
def test_whatever_is_killed_all_arrives_in_order(server: Server) -> None:
    """The background process is killed while receivers do all that bad ones do, and one never answers.

    Three kills, in a long run fifty. The one that is well has everything of each round before it ends.
    """
    turns, chance, go_on = itertools.count(), random.Random(7), threading.Event()

    def untaken(name: str, handler: Any) -> None:
        receivers[name].requests.remove(handler.taken)

    def fails_half_of_the_time(handler: Any) -> None:
        is_taken = next(turns) % 2
        if not is_taken:
            untaken("fails", handler)
        reply(handler, 204 if is_taken else 500)

    def hangs_at_times(handler: Any) -> None:
        if chance.random() < 0.1:
            untaken("hangs", handler)
            time.sleep(1.5)
        reply(handler, 204)

    def is_slow(handler: Any) -> None:
        for byte in b"HTTP/1.1 204 No Content\r\n\r\n":
            handler.wfile.write(bytes([byte]))
            time.sleep(0.005)

    def ends_early(handler: Any) -> None:
        if chance.random() < 0.25:
            untaken("early", handler)
            handler.connection.close()
        else:
            reply(handler, 204)

    def endless(handler: Any) -> None:
        with suppress(OSError):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n")
            while True:
                handler.wfile.write(b"x" * 65_536)

    def never_answers(handler: Any) -> None:
        if go_on.is_set():
            reply(handler, 204)
        else:
            untaken("stuck", handler)
            go_on.wait(4000)
            handler.connection.close()

    answers = {
        "fails": fails_half_of_the_time,
        "hangs": hangs_at_times,
        "slow": is_slow,
        "early": ends_early,
        "endless": endless,
        "stuck": never_answers,
    }
    with ExitStack() as stack:
        stack.callback(go_on.set)
        receivers = {name: stack.enter_context(receiving()) for name in ("well", *answers)}
        for name, receiver in receivers.items():
            receiver.answer = answers.get(name, receiver.answer)
            add(server, receiver.url, name)
        stored: list[str] = []
        process: int | None = None
        for number in range(KILLS):
            for part in range(2):
                path = f"/{number}-{part}.txt"
                assert server.request("PUT", f"/files{path}", body=b"x").status == 201
                stored.append(path)
            process = next_background_process(server, process)
            # One that has lasted for ten seconds is started again at once, others later and later.
            time.sleep(chance.random() * 0.3 if number % 3 < 2 or not IS_LONG else 10.5)
            os.kill(process, signal.SIGKILL)
            wait_for(lambda: paths(receivers["well"]) == stored, "it has all, in order", PATIENCE_S)
        go_on.set()
        for name in answers:
            # It may be in a long pause.
            assert server.request("POST", f"/system/webhooks/{name}/retry").status == 200
        for name, receiver in receivers.items():
            wait_for(
                lambda receiver=receiver: paths(receiver) == stored, f"{name} has all, in order", PATIENCE_S
            )


def test_a_dead_receiver_delays_no_other(server: Server, receiver: Receiver) -> None:
    with receiving() as dead:
        dead.answer = lambda handler: time.sleep(60)
        for number in range(8):
            add(server, dead.url, f"dead-{number}")
        add(server, receiver.url, "well")
        wait_for(lambda: background_process(server), "the background process is there")
        server.request("PUT", "/files/a.txt", body=b"x")
        wait_for(lambda: paths(receiver) == ["/a.txt"], "it has arrived")
        began = time.monotonic()
        for number in range(20):
            server.request("PUT", f"/files/{number}.txt", body=b"x")
        wait_for(lambda: len(paths(receiver)) == 21, "all has arrived")
        assert time.monotonic() - began < 10


def test_enabling_loses_nothing_and_makes_up_for_nothing(server: Server, receiver: Receiver) -> None:
    def change(**members: Any) -> None:
        headers = {"Content-Type": "application/json"}
        body = json.dumps(members).encode()
        assert server.request("PATCH", "/system/webhooks/one", body=body, headers=headers).status == 200

    def put(name: str) -> None:
        assert server.request("PUT", f"/files/{name}", body=b"x").status == 201

    add(server, receiver.url, "one", enabled=False)
    put("0")
    for number in range(1, 4):
        change(enabled=True)
        put(f"{number}")
        wait_for(lambda number=number: paths(receiver)[-1:] == [f"/{number}"], "it has arrived")
        change(enabled=False)
        time.sleep(random.choice([0.1, 1.2]))
        put(f"{number}-not")
    assert paths(receiver) == ["/1", "/2", "/3"]


def test_one_of_the_same_id_gets_nothing_of_the_one_before(server: Server, receiver: Receiver) -> None:
    with receiving() as before:
        before.answer = lambda handler: reply(handler, 500)
        for number in range(3):
            add(server, before.url, "one")
            time.sleep(0.7)
            server.request("PUT", f"/files/old-{number}", body=b"x")
            assert server.request("DELETE", "/system/webhooks/one").status == 200
            time.sleep(number * 0.4)
            add(server, receiver.url, "one")
            server.request("PUT", f"/files/new-{number}", body=b"x")
            wait_for(lambda number=number: f"/new-{number}" in paths(receiver), "it has arrived")
            assert server.request("DELETE", "/system/webhooks/one").status == 200
    assert [path for path in paths(receiver) if path.startswith("/old")] == []
