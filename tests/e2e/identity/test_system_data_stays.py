"""Users, groups and grants are of no version: going back brings nobody back, and takes nobody away."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import Result, TestClient

from svc.plugin import Database
from svc.plugins import Plugins
from svc_testing import load_with_testing_auth, serve_in_process
from svc_users.api import identity_stamp

PLUGINS = ("files", "history", "versions", "backup", "users")


class Http:
    """Calls the routes of one application, as root."""

    def __init__(self, app: Any, database: Database) -> None:
        self.database = database
        self._client = TestClient(app)

    def __call__(self, method: str, path: str, value: Any = None, status: int = 200) -> Result:
        options: dict[str, Any] = {}
        if isinstance(value, bytes):
            options["body"] = value
        elif value is not None:
            options = {"body": json.dumps(value), "headers": {"Content-Type": "application/json"}}
        answer = self._client.simulate_request(method, path, **options)
        assert answer.status_code == status, answer.text
        return answer

    def permissions(self, user: str) -> str:
        answer = self("GET", f"/system/access?path=/docs/a&user={user}")
        permissions: str = answer.json["permissions"]
        return permissions


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    return load_with_testing_auth(*PLUGINS)


@pytest.fixture
def http(tmp_path: Path, plugins: Plugins) -> Iterator[Http]:
    with serve_in_process(tmp_path / "x.svcdb", plugins) as (app, database, _mode):
        yield Http(app, database)


@pytest.fixture
def export(http: Http) -> bytes:
    """An export of a state when there were others; there are a snapshot and a fork of it too."""
    http("PUT", "/files/docs/a", b"then", 201)
    ann = http("POST", "/system/users", {"username": "ann"}, 201).json["user_id"]
    http("POST", "/system/groups", {"name": "staff", "members": [ann]}, 201)
    http("POST", "/system/grants", {"path": "/docs", "group": "staff", "allow": "crudlify"}, 201)
    http("POST", "/versions/snapshots", {"name": "then"}, 201)
    http("POST", "/versions/forks", {"name": "then"}, 201)
    exported = http("POST", "/versions/export").content
    assert http.permissions("ann") == "crudlify"
    http("DELETE", f"/system/users/{ann}")
    http("DELETE", "/system/groups/staff")
    bob = http("POST", "/system/users", {"username": "bob"}, 201).json["user_id"]
    http("POST", "/system/groups", {"name": "crew", "members": [bob]}, 201)
    http("POST", "/system/grants", {"path": "/docs", "group": "crew", "allow": "-r--l---"}, 201)
    http("PUT", "/files/docs/a", b"now")
    return exported


def restore_the_snapshot(http: Http, _export: bytes) -> None:
    http("POST", "/versions/restore", {"name": "then"})


def restore_a_directory(http: Http, _export: bytes) -> None:
    http("POST", "/versions/file-restore/docs", {"snapshot": "then"})


def promote_the_fork(http: Http, _export: bytes) -> None:
    http("POST", "/versions/forks/then/promote", {"force": True})


def merge_the_fork(http: Http, _export: bytes) -> None:
    http("PUT", "/files/docs/a?fork=then", b"then")
    http("POST", "/versions/merge", {"from": "then", "strategy": "theirs"})


def import_and_promote(http: Http, export: bytes) -> None:
    http("POST", "/versions/import?promote=true&force=true", export)


GOING_BACK = (restore_the_snapshot, restore_a_directory, promote_the_fork, import_and_promote)


@pytest.mark.parametrize("go_back", [*GOING_BACK, merge_the_fork], ids=lambda one: one.__name__)
def test_going_back_leaves_users_groups_and_grants_as_they_are(
    http: Http, export: bytes, go_back: Callable[[Http, bytes], None]
) -> None:
    stamp = identity_stamp(http.database.system())
    users, groups, grants = (http("GET", f"/system/{kind}").json for kind in ("users", "groups", "grants"))
    go_back(http, export)
    if go_back in GOING_BACK:
        assert http("GET", "/files/docs/a").content == b"then"
    assert identity_stamp(http.database.system()) == stamp
    assert http("GET", "/system/users").json == users
    assert http("GET", "/system/groups").json == groups
    assert http("GET", "/system/grants").json == grants
    assert [one["name"] for one in groups["groups"]] == ["crew"]
    assert http.permissions("ann") == "--------"
    assert http.permissions("bob") == "-r--l---"


def test_an_export_names_nobody(http: Http, export: bytes) -> None:
    for name in (b"ann", b"staff", b"crudlify"):
        assert name not in export


def test_no_file_route_shows_who_there_is(http: Http, export: bytes) -> None:
    for path in ("/.svc-system", "/.svc-system/users", "/.system/users/by-id", "/.svc-system/grants"):
        http("GET", f"/files{path}", status=404)
        http("PUT", f"/files{path}/x", b"1", status=404)
        http("DELETE", f"/files{path}?recursive=true", status=404)
    listed = http("GET", "/files/?depth=-1").json["items"]
    assert [one["path"] for one in listed] == ["/docs/a"]
    commits = http("GET", "/versions/log?path=/users").json["commits"]
    assert commits == []
