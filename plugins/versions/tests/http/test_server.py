"""The routes in a real server: several workers, many clients, restarts, and commands beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from svc.plugin import Database
from svc_testing import Completed, Server, start_server

from ..conftest import contents, write  # noqa: TID252

CLIENTS = 12


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the tests of this module; each uses names of its own."""
    path = tmp_path_factory.mktemp("server") / "served.svcdb"
    with start_server(path, "--workers", "2", plugins=("versions",)) as running:
        yield running


def send(server: Server, method: str, path: str, value: Any) -> Any:
    headers = {"Content-Type": "application/json"}
    return server.request(method, path, body=msgspec.json.encode(value), headers=headers)


@pytest.mark.parametrize("route", ["/version/snapshot", "/versions/forks"])
def test_of_many_clients_that_want_one_name_exactly_one_gets_201(server: Server, route: str) -> None:
    statuses: list[int] = []
    in_parallel(lambda _number: statuses.append(send(server, "POST", route, {"name": "wanted"}).status))
    assert sorted(statuses) == [201] + [409] * (CLIENTS - 1)


def test_of_many_clients_that_name_one_version_one_makes_a_snapshot(server: Server) -> None:
    with Database(server.database_path) as beside:
        write(beside, {"/a": "1"})
    answers: list[tuple[int, str]] = []

    def make(number: int) -> None:
        answer = send(server, "POST", "/versions/snapshots", {"name": f"s{number}"})
        answers.append((answer.status, answer.json()["name"]))

    in_parallel(make)
    assert sorted(status for status, _ in answers) == [200] * (CLIENTS - 1) + [201]
    assert len({name for _, name in answers}) == 1


def test_a_kill_loses_no_snapshot_and_no_fork_that_was_acknowledged(database_path: Path) -> None:
    names: list[str] = []
    with start_server(database_path, plugins=("versions",)) as running:
        for number in range(5):
            with Database(database_path) as beside:
                write(beside, {"/a": str(number)})
            assert send(running, "POST", "/versions/snapshots", {"name": f"s{number}"}).status == 201
            assert send(running, "POST", "/versions/forks", {"name": f"f{number}"}).status == 201
            names.append(str(number))
        running.kill()
    with start_server(database_path, plugins=("versions",)) as running:
        snapshots = running.get("/versions/snapshots").json()["snapshots"]
        forks = running.get("/version/forks").json()
        assert [one["name"] for one in snapshots] == [f"s{number}" for number in names[::-1]]
        assert [one["name"] for one in forks] == [f"f{number}" for number in names[::-1]]
        assert send(running, "POST", "/version/restore", {"name": "s0"}).status == 200
    with Database(database_path) as beside:
        assert contents(beside) == {"/a": "0"}


def test_commands_work_while_a_server_has_the_database(
    server: Server, run_svc: Callable[..., Completed]
) -> None:
    database_path = server.database_path
    with Database(database_path) as beside:
        write(beside, {"/a": "cli"})
    made = run_svc("snapshot", "create", "cli", "-D", database_path, "--json")
    assert made.exit_code == 0, made.stderr
    assert server.get("/versions/snapshots/cli").json()["root_hash"] == made.json()["root_hash"]
    assert send(server, "POST", "/versions/forks", {"name": "http"}).status == 201
    assert "http" in run_svc("fork", "list", "-D", database_path).stdout
    with Database(database_path) as beside:
        write(beside, {"/a": "2"}, "http")
    assert run_svc("merge", "http", "-D", database_path).exit_code == 0
    with Database(database_path) as beside:
        assert contents(beside)["/a"] == "2"


def in_parallel(work: Callable[[int], object]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
