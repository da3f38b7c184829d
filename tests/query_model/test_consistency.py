"""A query that begins after a write was acknowledged sees it: from every worker, and without the indexer."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from query_model.scale import EXTENT, scaled
from svc_blackbox.client import Client, Response
from svc_blackbox.server import Server

PLUGINS = (
    "auth.disabled,files,versions,users,query,parsers,index.exact,index.trigram,index.fulltext,index.phonetic"
)
CONFIGURATION = {
    "glob": "**/*.json",
    "indexes": [
        {"name": "number", "type": "exact", "value_type": "integer"},
        {"name": "title", "type": ["exact", "trigram"]},
        {"name": "text", "type": "fulltext"},
    ],
}
WORKERS = 2
CONNECTIONS = 8

pytestmark = pytest.mark.timeout(0 if EXTENT.scale > 1 else 120)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = Server(tmp_path / "x.svcdb", "--workers", str(WORKERS), environment={"SVC_PLUGINS": PLUGINS})
    started.start()
    client = started.client()
    client.store(
        "/docs/.svc-config/indexes.json",
        json.dumps(CONFIGURATION).encode(),
        {"Content-Type": "application/json"},
    )
    yield started
    started.close()


def put(client: Client, number: int) -> None:
    content = {"number": number, "title": f"title {number}.", "text": f"the wordof{number} in a text"}
    client.store(
        f"/docs/d{number % 3}/n{number}.json",
        json.dumps(content).encode(),
        {"Content-Type": "application/json"},
    )


QUESTIONS = (
    lambda number: {"field": "number", "op": "eq", "value": number},
    lambda number: {"field": "title", "op": "contains", "value": f"itle {number}."},
    lambda number: {"field": "text", "op": "search", "value": f"wordof{number}"},
    lambda number: {"field": "@filename", "op": "eq", "value": f"n{number}.json"},
)


def ask(client: Client, where: Any) -> Response:
    return client.post("/query", {"path": "/docs", "where": where, "limit": 1000})


def paths(answer: Response) -> list[str]:
    assert answer.status == 200, answer.body
    return [row["path"] for row in answer.json()["results"]]


def test_each_write_is_seen_at_once_from_every_worker(server: Server) -> None:
    """Writes and queries go over many connections, so that workers differ; others write meanwhile."""
    clients = [server.client() for _ in range(CONNECTIONS)]
    over = threading.Event()
    failed: list[BaseException] = []

    def disturb() -> None:
        with Client(server.url) as own:
            number = 1_000_000
            try:
                while not over.is_set():
                    put(own, number)
                    number += 1
            except BaseException as error:
                failed.append(error)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for number in range(scaled(60)):
            put(clients[number % CONNECTIONS], number)
            where = QUESTIONS[number % len(QUESTIONS)](number)
            expected = f"/docs/d{number % 3}/n{number}.json"
            for client in (clients[(number + 1) % CONNECTIONS], clients[(number + 4) % CONNECTIONS]):
                assert expected in paths(ask(client, where)), (number, where)
        for number in range(0, scaled(60), 7):
            answer = clients[number % CONNECTIONS].delete(f"/files/docs/d{number % 3}/n{number}.json")
            assert answer.status == 200
            where = QUESTIONS[number % len(QUESTIONS)](number)
            gone = f"/docs/d{number % 3}/n{number}.json"
            assert gone not in paths(ask(clients[(number + 3) % CONNECTIONS], where))
    finally:
        over.set()
        thread.join()
    assert not failed, failed


def background_of(server: Server) -> int | None:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == server.pid and "background" in (entry / "comm").read_text():
                return int(entry.name)
        except (OSError, IndexError):
            continue
    return None


def test_a_write_is_seen_although_the_background_process_was_killed(server: Server) -> None:
    """Either the query finds it, or it is 503 and says which view lags; and soon it finds it again."""
    client = server.client()
    put(client, 0)
    assert paths(ask(client, QUESTIONS[0](0)))
    for number in range(1, scaled(6) + 1):
        deadline = time.monotonic() + 60
        while (pid := background_of(server)) is None:
            assert time.monotonic() < deadline, "no background process came back"
            time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
        put(client, number)
        expected = [f"/docs/d{number % 3}/n{number}.json"]
        deadline = time.monotonic() + 60
        while True:
            answer = ask(client, QUESTIONS[number % len(QUESTIONS)](number))
            if answer.status != 503:
                break
            told = answer.json()
            assert told["code"] == "SERVICE_UNAVAILABLE"
            assert "query.index" in answer.body.decode(), told
            assert time.monotonic() < deadline, "the view never caught up"
        assert paths(answer) == expected
    assert [paths(ask(client, QUESTIONS[0](number))) for number in range(scaled(6) + 1)] == [
        [f"/docs/d{number % 3}/n{number}.json"] for number in range(scaled(6) + 1)
    ]


def test_whoever_does_not_want_to_wait_need_not(server: Server) -> None:
    """With ``eventual`` there is an answer even while the view is held up."""
    client = server.client()
    put(client, 1)
    assert paths(ask(client, QUESTIONS[0](1)))
    for number in range(2, 40):
        put(client, number)
        answer = client.post("/query", {"path": "/docs", "where": QUESTIONS[0](1), "consistency": "eventual"})
        assert paths(answer) == ["/docs/d1/n1.json"]


def test_the_server_that_was_killed_has_the_same_answers(server: Server) -> None:
    client = server.client()
    for number in range(50):
        put(client, number)
    server.kill()
    server.start()
    client = server.client()
    everything = {"field": "number", "op": "gte", "value": 0}
    assert len(paths(ask(client, everything))) == 50
    for number in (0, 17, 49):
        for question in QUESTIONS:
            assert paths(ask(client, question(number))) == [f"/docs/d{number % 3}/n{number}.json"]
