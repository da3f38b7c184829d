"""The routes of tasks and of schedules."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from svc_tasks.api import TaskProgress
from svc_tasks.queue import Queue, finished
from svc_tasks.state import RunnerState, runner_file

from svc.plugin import Identity
from svc_testing import PathRights

USER = Identity("00000000-0000-0000-0000-000000000009", "ann", rights=PathRights({"/": "crudlify"}))
ROUTES = [
    ("GET", "/system/tasks"),
    ("POST", "/system/tasks/count"),
    ("GET", f"/system/tasks/{'0' * 32}"),
    ("DELETE", f"/system/tasks/{'0' * 32}"),
    ("POST", f"/system/tasks/{'0' * 32}/cancel"),
    ("GET", "/system/cron"),
    ("POST", "/system/cron"),
    ("GET", "/system/cron/a"),
    ("PATCH", "/system/cron/a"),
    ("DELETE", "/system/cron/a"),
    ("GET", "/.config/cron.json"),
    ("PUT", "/.config/cron.json"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_all_of_it_is_roots(http: Any, method: str, path: str) -> None:
    http.become(USER)
    answer = http(method, path)
    assert (answer.status_code, answer.json["code"]) == (403, "FORBIDDEN")
    http.become(None)
    assert http(method, path).status_code == 401


def test_a_trigger_enqueues_and_answers_the_task(http: Any) -> None:
    made = http.post("/system/tasks/count", {"to": 3})
    assert made.status_code == 202
    assert made.json["status"] == "pending"
    assert made.json["args"] == {"to": 3, "batch": 1, "pause": 0.0, "name": "count"}
    assert made.json["actor"] == "00000000-0000-0000-0000-000000000000"
    assert http.post("/system/tasks/count", {"to": 3}).json["id"] == made.json["id"]
    other = http.post("/system/tasks/raise")
    assert [one["id"] for one in http.get("/system/tasks").json["tasks"]] == [
        other.json["id"],
        made.json["id"],
    ]
    assert http.get(f"/system/tasks/{made.json['id']}").json == made.json
    assert [one["task_type"] for one in http.get("/system/tasks", type="count").json["tasks"]] == ["count"]
    assert http.get("/system/tasks", status="running").json == {"tasks": []}


@pytest.mark.parametrize(
    ("body", "field"),
    [({"to": "x"}, "to"), ({"until": 1}, "until"), ({"to": 1, "pause": []}, "pause")],
)
def test_arguments_that_are_wrong_are_refused(http: Any, body: Any, field: str) -> None:
    refused = http.post("/system/tasks/count", body)
    assert (refused.status_code, refused.json["code"], refused.json["field"]) == (400, "INVALID_INPUT", field)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b'"x"', b'{"to": 1', b"\xff"])
@pytest.mark.parametrize("path", ["/system/tasks/count", "/system/cron"])
def test_a_body_that_is_no_object_is_refused(http: Any, path: str, body: bytes) -> None:
    if not body and path.endswith("count"):
        assert http.post(path, body).status_code == 202
        return
    assert http.post(path, body).status_code == 400


@pytest.mark.parametrize("how", ["raise", "exit", "object", "list", "huge"])
def test_a_strangers_check_that_fails_is_an_error_of_the_request(http: Any, how: str) -> None:
    refused = http.post("/system/tasks/bad-check", {"how": how})
    assert (refused.status_code, refused.json["field"]) == (400, "args")


def test_what_makes_no_sense_for_the_database_is_refused_before_it_waits(http: Any) -> None:
    schedule = {"id": "a", "task_type": "picky", "schedule": "0 3 * * *", "args": {"file": "a"}}
    file = {"schedules": [schedule]}
    for answer, field in (
        (http.post("/system/tasks/picky", {"file": "a"}), "file"),
        (http.post("/system/cron", schedule), "args.file"),
        (http.post("/system/cron", {**schedule, "enabled": False}), "args.file"),
        (http.send("PUT", "/.config/cron.json", file), "schedules[0].args.file"),
        (http.post("/system/tasks/picky", {"file": "broken"}), "args"),
    ):
        assert (answer.status_code, answer.json["field"]) == (400, field)
    assert http.get("/system/tasks").json == {"tasks": []}
    assert http.get("/system/cron").json == {"schedules": []}
    with http.database.transaction() as changes:
        changes.put(("a",), b"1")
    assert http.post("/system/tasks/picky", {"file": "a"}).status_code == 202
    assert http.post("/system/cron", schedule).status_code == 201
    with http.database.transaction() as changes:
        changes.delete(("a",))
    changes_of_it: Any = ({"schedule": "0 4 * * *"}, {"enabled": False}, {"enabled": True})
    answers = [http.send("PATCH", "/system/cron/a", change).status_code for change in changes_of_it]
    assert answers == [400, 200, 400]
    assert http.post("/system/cron", NIGHTLY).status_code == 201


@pytest.mark.parametrize("name", ["none", "hidden", "%2e%2e", "cron", "COUNT"])
def test_a_type_that_there_is_none_of_is_not_found(http: Any, name: str) -> None:
    assert http.post(f"/system/tasks/{name}").status_code == 404


@pytest.mark.parametrize("task_id", ["x", "0" * 32, "f" * 500])
def test_a_task_that_there_is_none_of_is_not_found(http: Any, task_id: str) -> None:
    for answer in (
        http.get(f"/system/tasks/{task_id}"),
        http.delete(f"/system/tasks/{task_id}"),
        http.post(f"/system/tasks/{task_id}/cancel"),
    ):
        assert (answer.status_code, answer.json["code"]) == (404, "NOT_FOUND")


def test_both_routes_cancel_and_what_is_over_is_a_conflict(http: Any) -> None:
    first, second, third = (http.post("/system/tasks/count", {"to": to}).json["id"] for to in (1, 2, 3))
    assert http.post(f"/system/tasks/{first}/cancel").json["status"] == "cancelled"
    assert http.delete(f"/system/tasks/{second}").json["status"] == "cancelled"
    Queue(http.database).change(third, lambda task: finished(task, "completed"), "end")
    refused = http.delete(f"/system/tasks/{third}")
    assert (refused.status_code, refused.json["code"]) == (409, "CONFLICT")


def test_a_running_task_shows_its_progress(http: Any) -> None:
    made = http.post("/system/tasks/count", {"to": 8}).json
    queue = Queue(http.database)
    queue.change(made["id"], lambda task: msgspec.structs.replace(task, status="running"), "begin")
    progress = TaskProgress(
        task_id=made["id"],
        task_type="count",
        progress=0.5,
        eta_ms=40,
        indexed_count=4,
        total_count=8,
        message="x",
    )
    runner_file(http.database.state_directory).beat(RunnerState(1, (progress,)))
    assert http.get(f"/system/tasks/{made['id']}").json["progress"] == msgspec.to_builtins(progress)
    asked = http.delete(f"/system/tasks/{made['id']}").json
    assert (asked["status"], asked["cancel_requested"]) == ("running", True)
    queue.change(made["id"], lambda task: finished(task, "cancelled"), "end")
    assert "progress" not in http.get(f"/system/tasks/{made['id']}").json


NIGHTLY = {
    "id": "nightly",
    "task_type": "count",
    "schedule": "30 3 * * *",
    "args": {"to": 2},
    "enabled": True,
}


def test_schedules_are_made_shown_changed_and_removed(http: Any) -> None:
    assert http.get("/system/cron").json == {"schedules": []}
    assert http.get("/.config/cron.json").status_code == 404
    made = http.post("/system/cron", NIGHTLY)
    assert made.status_code == 201
    assert {name: made.json[name] for name in NIGHTLY} == NIGHTLY
    assert len(made.json["next_runs"]) == 3
    again = http.post("/system/cron", NIGHTLY)
    assert (again.status_code, again.json["code"]) == (409, "ALREADY_EXISTS")
    assert http.get("/.config/cron.json").json == {"schedules": [NIGHTLY]}
    changed = http.send("PATCH", "/system/cron/nightly", {"enabled": False})
    assert (changed.status_code, changed.json["enabled"], changed.json["next_runs"]) == (200, False, [])
    assert http.get("/system/cron/nightly").json == changed.json
    assert http.delete("/system/cron/nightly").json == {"deleted": True, **NIGHTLY, "enabled": False}
    assert http.get("/.config/cron.json").json == {"schedules": []}
    for method in ("GET", "DELETE"):
        assert http(method, "/system/cron/nightly").status_code == 404
    assert http.send("PATCH", "/system/cron/nightly", {}).status_code == 404


def test_the_file_and_the_routes_are_two_views_of_one_thing(http: Any) -> None:
    content = b'{ "schedules" : [\n {"id": "a", "task_type": "raise", "schedule": "0 0 * * *"} ] }'
    stored = http("PUT", "/.config/cron.json", body=content)
    assert stored.status_code == 200
    assert http.get("/.config/cron.json").content == content
    assert [one["id"] for one in http.get("/system/cron").json["schedules"]] == ["a"]
    bad = http("PUT", "/.config/cron.json", body=content.replace(b"0 0", b"61 0"))
    assert (bad.status_code, bad.json["field"]) == (400, "schedules[0].schedule")
    assert http.get("/.config/cron.json").content == content


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"schedule": "x"}, "schedule"),
        ({"schedule": "0 0 31 2 *"}, "schedule"),
        ({"task_type": "none"}, "task_type"),
        ({"args": {"to": "x"}}, "args.to"),
        ({"enabled": 1}, "enabled"),
    ],
)
def test_a_schedule_that_is_not_valid_is_refused(http: Any, change: Any, field: str) -> None:
    for answer in (
        http.post("/system/cron", {**NIGHTLY, **change}),
        http.post("/system/cron", NIGHTLY) and http.send("PATCH", "/system/cron/nightly", change),
    ):
        assert (answer.status_code, answer.json["field"]) == (400, field)
    assert http.get("/system/cron").json["schedules"][0]["schedule"] == NIGHTLY["schedule"]


def test_members_that_there_are_none_of_are_refused(http: Any) -> None:
    http.post("/system/cron", NIGHTLY)
    assert http.post("/system/cron", {**NIGHTLY, "id": "b", "more": 1}).status_code == 400
    assert http.send("PATCH", "/system/cron/nightly", {"id": "b"}).status_code == 400
    assert http.post("/system/cron", {**NIGHTLY, "id": "a b"}).json["field"] == "id"


def test_a_file_that_came_unchecked_is_read_as_far_as_it_can_be(http: Any) -> None:
    http.database.use_content_checks([])
    with http.database.transaction() as changes:
        changes.put((".config", "cron.json"), b'{"schedules": [{"id": "a"}, 3]}')
    assert http.get("/system/cron").json == {"schedules": []}
    refused = http.post("/system/cron", NIGHTLY)
    assert (refused.status_code, refused.json["code"]) == (409, "CONFLICT")
    stored = http("PUT", "/.config/cron.json", body=b'{"schedules": []}')
    assert stored.status_code == 200
    assert http.post("/system/cron", NIGHTLY).status_code == 201


def test_health_tells_of_tasks_that_fail_and_of_tasks_that_nobody_runs(http: Any, monkeypatch: Any) -> None:
    def check() -> Any:
        from svc_tasks.health import TaskHealth

        from svc.plugins.context import make_context

        return TaskHealth().check(make_context("tasks", None, http.database))

    assert check().status.value == "healthy"
    first = http.post("/system/tasks/raise").json["id"]
    queue = Queue(http.database)
    assert check().status.value == "healthy"
    now = queue.get(first).created_at
    monkeypatch.setattr("svc_tasks.health.now_ms", lambda: now + 61_000)
    assert check().message == "Tasks wait, and nobody runs them."
    monkeypatch.undo()
    queue.change(first, lambda task: finished(task, "failed", error="so"), "end")
    assert check().message == "The latest task of a type has failed."
    assert check().details == {"tasks": {"raise": {"id": first, "error": "so"}}}
    second = http.post("/system/tasks/raise").json["id"]
    queue.change(
        second, lambda task: msgspec.structs.replace(finished(task, "completed"), finished_at=1 << 50), "end"
    )
    assert check().status.value == "healthy"


def test_only_root_changes_the_schedules_by_way_of_files(http: Any) -> None:
    """A user to whom everything was granted reads what lies in ``/.config``, and changes nothing of it."""
    from svc.pipeline.permission import effective_permissions, permits
    from svc.plugin import Operation

    assert effective_permissions(USER, (".config", "cron.json")) == "-r--lify"
    assert effective_permissions(USER, ("x", ".config")) == "crudlify"
    assert not permits(USER, Operation.CREATE, (".config",))
    assert not permits(USER, Operation.DELETE, (), below=True)
    assert permits(USER, Operation.READ, (), below=True)
    assert permits(USER, Operation.CREATE, ("x",), below=True)
