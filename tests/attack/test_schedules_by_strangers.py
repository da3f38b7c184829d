"""A user who may do everything to every file tries to become who decides what the server runs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from blake3 import blake3

from attack.strangers import Caller, World, open_world

SCHEDULES = json.dumps({"schedules": [{"id": "evil", "task_type": "gc", "schedule": "* * * * *"}]})
JSON = {"Content-Type": "application/json"}
FILE = "/.config/cron.json"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    opened = open_world(tmp_path_factory.mktemp("schedules"))
    yield opened
    opened.server.close()


@pytest.fixture(scope="module")
def eve(world: World) -> Caller:
    """Somebody with every permission on ``/``, with a valid file of schedules at hand."""
    root = world.root
    user = root.made("POST", "/system/users", {"username": "eve", "email": "eve@x.example"})["user_id"]
    root.made("POST", "/files/share", {"paths": ["/"], "users": [user], "permissions": "crudlify"})
    eve = world.sign_in("eve", root.made("POST", "/auth/keys/admin", {"user_id": user})["key"])
    assert eve.ask("PUT", "/files/x/cron.json", body=SCHEDULES.encode(), headers=JSON).status == 201
    assert eve.ask("PUT", "/links/y", {"target": "/.config"}).status == 201
    assert eve.ask("POST", "/versions/forks", {"name": "f"}).status == 201
    assert eve.ask("PUT", f"/blobs/chunks/{HASH}", body=SCHEDULES.encode()).status in (200, 201)
    return eve


HASH = blake3(SCHEDULES.encode()).hexdigest()
PUTS = (
    "/files/.config/cron.json",
    "/engine/.config/cron.json",
    "/files/.config//cron.json",
    "/files/./.config/cron.json",
    "/files/%2econfig/cron.json",
    "/files/.con%66ig/cron.json",
    "/files/.config%2fcron.json",
    "/files/y/cron.json",
    "/files/.config/cron.json?fork=f",
    "/.config/cron.json",
)
BATCHES = (
    {"op": "put", "path": FILE, "content": SCHEDULES},
    {"op": "copy", "path": "/x", "to": "/.config"},
    {"op": "move", "path": "/x", "to": "/.config"},
    {"op": "move", "path": "/x/cron.json", "to": FILE},
    {"op": "copy", "path": "/x/cron.json", "to": "/y/cron.json"},
)
POSTS = (
    ("POST", "/files/copy", {"paths": ["/x/cron.json"], "destination": "/.config"}),
    ("POST", "/files/copy?fork=f", {"paths": ["/x/cron.json"], "destination": "/.config"}),
    ("PATCH", "/files/x", {"to": "/.config"}),
    ("PATCH", "/files/x?fork=f", {"to": "/.config"}),
    ("PATCH", "/files/x/cron.json", {"to": FILE}),
    ("PUT", "/links/.config", {"target": "/x"}),
    ("PUT", "/links/.config/cron.json", {"target": "/x/cron.json"}),
    ("POST", "/versions/merge", {"from": "f", "into": "HEAD", "strategy": "theirs"}),
    (
        "POST",
        "/blobs/commit",
        {"files": [{"path": FILE, "content_type": "application/json", "chunk_hashes": [HASH]}]},
    ),
    ("POST", "/system/cron", {"id": "evil", "task_type": "gc", "schedule": "* * * * *"}),
    ("POST", "/system/tasks/gc", {}),
    ("POST", "/system/gc", None),
    ("GET", "/system/tasks", None),
    ("GET", "/system/cron", None),
)


def assert_unchanged(world: World) -> None:
    assert world.root.made("GET", "/system/cron") == {"schedules": []}
    assert world.root.ask("GET", f"/files{FILE}").status == 404


@pytest.mark.parametrize("target", PUTS)
def test_schedules_cannot_be_put(world: World, eve: Caller, target: str) -> None:
    assert eve.ask("PUT", target, body=SCHEDULES.encode(), headers=JSON).status == 403
    assert_unchanged(world)


@pytest.mark.parametrize("operation", BATCHES, ids=str)
def test_no_batch_makes_schedules(world: World, eve: Caller, operation: dict[str, str]) -> None:
    assert eve.ask("POST", "/files/batch", {"operations": [operation]}).status == 403
    assert_unchanged(world)


@pytest.mark.parametrize(("method", "target", "value"), POSTS, ids=lambda one: str(one)[:40])
def test_no_other_way_leads_there(world: World, eve: Caller, method: str, target: str, value: object) -> None:
    assert eve.ask(method, target, value).status == 403
    assert_unchanged(world)
