"""The routes in a real server with two workers: names, changes and restarts hold across processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from svc.plugin import Database
from svc_testing import Completed, Server, start_server

CLIENTS = 12


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the tests of this module; each uses names of its own."""
    path = tmp_path_factory.mktemp("server") / "served.svcdb"
    with start_server(path, "--workers", "2", plugins=("users",)) as running:
        yield running


def send(server: Server, method: str, path: str, value: Any) -> Any:
    headers = {"Content-Type": "application/json"}
    return server.request(method, path, body=msgspec.json.encode(value), headers=headers)


def in_parallel(work: Callable[[int], object]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    ("route", "member"), [("/system/users", "username"), ("/system/groups", "name")], ids=["users", "groups"]
)
def test_of_many_clients_that_want_one_name_exactly_one_gets_it(
    server: Server, route: str, member: str
) -> None:
    statuses: list[int] = []
    in_parallel(lambda _: statuses.append(send(server, "POST", route, {member: "wanted"}).status))
    assert sorted(statuses) == [201] + [409] * (CLIENTS - 1)


def test_a_change_is_seen_by_the_next_request_of_every_worker(server: Server) -> None:
    user_id = send(server, "POST", "/system/users", {"username": "seen"}).json()["user_id"]
    for round_ in range(5):
        allow = "-r------" if round_ % 2 else "--u-----"
        body = {"path": "/seen", "group": f"user:{user_id}", "allow": allow}
        assert send(server, "POST", "/system/grants", body).status in (200, 201)
        shown: list[str] = []

        def ask(_number: int, into: list[str] = shown) -> None:
            answer = server.get(f"/system/access?path=/seen/x&user={user_id}")
            into.append(answer.json()["permissions"])

        in_parallel(ask)
        assert shown == [allow] * CLIENTS


def test_names_are_one_users_beside_a_command_on_the_file(
    server: Server, run_svc: Callable[..., Completed]
) -> None:
    database = server.database_path
    assert run_svc("user", "add", "shell", "-D", database).exit_code == 0
    assert send(server, "POST", "/system/users", {"username": "Shell"}).status == 409
    assert send(server, "POST", "/system/users", {"username": "http"}).status == 201
    assert run_svc("user", "add", "HTTP", "-D", database).exit_code == 4


def test_a_kill_loses_nothing_that_was_acknowledged(database_path: Path) -> None:
    with start_server(database_path, plugins=("users",)) as running:
        user_id = send(running, "POST", "/system/users", {"username": "kept"}).json()["user_id"]
        made = send(running, "POST", "/system/groups", {"name": "kept", "members": [user_id]})
        assert made.status == 201
        body = {"path": "/a", "group": "kept", "allow": "crudlify"}
        grant_id = send(running, "POST", "/system/grants", body).json()["grant_id"]
        running.kill()
    with start_server(database_path, plugins=("users",)) as running:
        shown = running.get(f"/system/users/{user_id}").json()
        assert shown["groups"] == ["kept", f"user:{user_id}"]
        assert running.get(f"/system/grants/{grant_id}").status == 200
        assert running.get("/system/access?path=/a&user=kept").json()["permissions"] == "crudlify"
    with Database(database_path) as database:
        assert database.findings() == ()
