"""In a real server: tasks come by themselves after a change of ``indexes.json``, and say why they failed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from svc.plugin import Database
from svc_testing import Server, start_server

PLUGINS = ("query", "tasks", "task.reindex")
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("server") / "served.svcdb"
    with start_server(path, "--workers", "2", "--background", "true", plugins=PLUGINS) as running:
        yield running


@pytest.fixture
def beside(server: Server) -> Iterator[Database]:
    with Database(server.database_path) as opened:
        yield opened


def write(database: Database, directory: str, count: int, entry: dict[str, Any], **members: Any) -> None:
    """Files of a directory, and then what is indexed of them."""
    with database.transaction() as transaction:
        for number in range(count):
            transaction.put((directory, f"{number:03}"), b"x", content_type="text/plain")
    configuration = {"indexes": [entry], **members}
    with database.transaction() as transaction:
        transaction.put((directory, ".svc-config", "indexes.json"), json.dumps(configuration).encode())


def ended(server: Server, path: str) -> dict[str, Any]:
    """The task for a path, when it has ended."""
    for _ in range(1_500):
        for task in server.get("/system/tasks").json()["tasks"]:
            if task["args"]["path"] == path and task["status"] not in ("pending", "running"):
                found: dict[str, Any] = task
                return found
        time.sleep(0.02)
    raise AssertionError(server.get("/system/tasks").json())


def test_a_change_of_virtual_fields_makes_a_task_for_metadata(server: Server, beside: Database) -> None:
    write(beside, "virtual", 60, {"name": "@filename", "type": "exact"})
    task = ended(server, "/virtual")
    assert task["status"] == "completed", task
    assert task["args"]["metadata_only"] is True
    assert task["actor"] is None
    assert task["result"]["files"] == 61


def test_ten_files_in_a_row_without_their_parser_trip_the_breaker(server: Server, beside: Database) -> None:
    write(beside, "content", 12, {"name": "title", "type": "exact", "source": ["title"]}, parser="nobody's")
    task = ended(server, "/content")
    assert task["args"]["metadata_only"] is False
    assert (task["status"], task["error"]) == (
        "failed",
        "circuit breaker: 10 consecutive indexing failures",
    )


def test_a_path_where_nothing_is_fails_and_a_wrong_argument_is_refused(server: Server) -> None:
    post = server.request
    answer = post("POST", "/system/tasks/reindex", body=b'{"path": "/nowhere"}', headers=JSON)
    assert answer.status == 202
    assert ended(server, "/nowhere")["error"] == "Nothing is at /nowhere."
    answer = post("POST", "/system/tasks/reindex", body=b'{"force": "yes"}', headers=JSON)
    assert (answer.status, answer.json()["field"]) == (400, "force")
    answer = post("POST", "/system/tasks/reindex", body=b'{"path": "/.svc-system"}', headers=JSON)
    assert (answer.status, answer.json()["field"]) == (400, "path")
