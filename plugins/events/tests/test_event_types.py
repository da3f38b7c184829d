"""The event types of the plugins of the default set, by the contract of event types."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from svc_events.api import GAP, EventFilter, Onlooker, Place, feed_of
from svc_events.testing import EventTypeContract
from svc_query.event_types import IndexEvents
from svc_task_gc.event_types import GcEvents
from svc_tasks.event_types import TaskEvents
from svc_tasks.queue import Queue, begin_message, finished

from svc.plugin import Database, Origin
from svc_sharing.event_types import ShareEvents
from svc_sharing.grants import share
from svc_sharing.models import NewShares
from svc_testing import simulate_collection
from svc_users.event_types import PermissionEvents
from svc_users.granting import grant, ungrant
from svc_users.groups import create_group, delete_group
from svc_users.users import create_user
from svc_versions.event_types import VersionEvents
from svc_versions.forks import create_fork
from svc_versions.snapshots import create_snapshot

REPORT = {"live_entries": 1, "garbage_entries": 2}


def run_task(database: Database, name: str, *, result: Any = None, error: str | None = None) -> str:
    """What a runner does to a task, without running anything."""
    queue = Queue(database)
    wanted = queue.want(name, {"number": database.head().sequence}, actor=None, schedule_id=None)
    assert wanted.add is not None
    with database.transaction() as changes:
        wanted.add(changes)
    task_id = wanted.task.id
    queue.change(
        task_id,
        lambda task: msgspec.structs.replace(task, status="running", started_at=1),
        begin_message(task_id),
    )
    queue.change(task_id, lambda task: msgspec.structs.replace(task, checkpoint=[1]), "checkpoint")
    status = "completed" if error is None else "failed"
    queue.change(task_id, lambda task: finished(task, status, result=result, error=error), "end")
    return task_id


class TestTasks(EventTypeContract):
    plugin_id = "tasks"

    @pytest.fixture
    def extension(self) -> TaskEvents:
        return TaskEvents()

    def happen(self, database: Database) -> None:
        run_task(database, "well", result={"n": 1})
        run_task(database, "ill", error="no")

    def test_a_task_is_told_once_for_each_turn_of_its_life(
        self, extension: TaskEvents, database: Database
    ) -> None:
        task_id = run_task(database, "well", result={"n": 1})
        told = [data for data in self.told(extension, database).values() if data is not None]
        assert [data.event_type for data in told] == ["tasks_started", "tasks_completed"]
        assert [data.payload["status"] for data in told] == ["running", "completed"]
        assert {data.payload["id"] for data in told} == {task_id}
        assert told[1].payload["result"] == {"n": 1}
        # Nobody reads what the old trees had any more; the record of the task is still there.
        simulate_collection(database)
        told = [data for data in self.told(extension, database).values() if data is not None]
        assert [data.event_type for data in told] == ["tasks_started", "tasks_completed"]
        assert [data.payload["result"] for data in told] == [None, {"n": 1}]

    def test_of_a_task_whose_record_is_gone_the_beginning_is_known(
        self, extension: TaskEvents, database: Database
    ) -> None:
        task_id = run_task(database, "well")
        with database.transaction() as changes:
            changes.delete_system(("tasks", "records", task_id))
        simulate_collection(database)
        told = [data for data in self.told(extension, database).values() if data is not None]
        assert [data.payload for data in told] == [{"id": task_id, "status": "running"}]


class TestCollections(EventTypeContract):
    plugin_id = "task.gc"
    beside = ("tasks",)

    @pytest.fixture
    def extension(self) -> GcEvents:
        return GcEvents()

    def happen(self, database: Database) -> None:
        run_task(database, "gc", result=REPORT)
        run_task(database, "another", result=REPORT)

    def test_the_report_is_the_payload(self, extension: GcEvents, database: Database) -> None:
        self.happen(database)
        told = [data for data in self.told(extension, database).values() if data is not None]
        assert [data.event_type for data in told] == ["gc_started", "gc_completed"]
        assert told[1].payload == REPORT


class TestVersions(EventTypeContract):
    plugin_id = "versions"

    @pytest.fixture
    def extension(self) -> VersionEvents:
        return VersionEvents()

    def happen(self, database: Database) -> None:
        with database.transaction() as changes:
            changes.put(("a",), b"1")
        create_snapshot(database, "monday")
        create_fork(database, "draft")
        with database.transaction(ref="forks/draft") as changes:
            changes.put(("b",), b"2")

    def test_who_has_no_account_is_told_nothing(self, extension: VersionEvents, database: Database) -> None:
        place = feed_of(database).end()
        create_snapshot(database, "one")
        batch = feed_of(database).after(place)
        assert batch is not None

        def told(user_id: str | None) -> list[str]:
            by = Onlooker(lambda path: path == ("open",), user_id)
            found = [EventFilter().select(event, by) for event in batch.events]
            return [one.event.payload["name"] for one in found if one is not None]

        assert told("ann") == ["one"]
        assert told(None) == []

    def test_a_snapshot_and_a_fork_are_told_once(self, extension: VersionEvents, database: Database) -> None:
        self.happen(database)
        for _ in range(2):
            told = [data.payload for data in self.told(extension, database).values() if data is not None]
            assert [(one["kind"], one["name"]) for one in told] == [
                ("snapshot", "monday"),
                ("fork", "draft"),
            ]
            simulate_collection(database)
        assert told[0]["root_hash"] == database.named_version("snapshots/monday").hex()


class TestPermissions(EventTypeContract):
    plugin_id = "users"

    @pytest.fixture
    def extension(self) -> PermissionEvents:
        return PermissionEvents()

    def happen(self, database: Database) -> None:
        user = create_user(database, "ann")
        made, _ = grant(database, ("shared",), f"user:{user.user_id}", allow="-r------")
        ungrant(database, made.grant_id)

    def test_giving_and_taking_back_are_told(self, extension: PermissionEvents, database: Database) -> None:
        self.happen(database)
        told = [data.payload for data in self.told(extension, database).values() if data is not None]
        assert told == [{"path": "/shared"}] * 2

    def test_what_a_collection_took_is_a_gap_and_no_silence(
        self, extension: PermissionEvents, database: Database
    ) -> None:
        for path in ("one", "two"):
            create_group(database, path)
            made, _ = grant(database, (path,), path, allow="-r------")
            ungrant(database, made.grant_id)
        before = feed_of(database).after(Place(0))
        assert before is not None
        told = [one.event for one in before.events if one.event.event_type == "permissions_changed"]
        feed_of(database).forget()
        simulate_collection(database)
        after = feed_of(database).after(Place(0))
        assert after is not None
        gaps = [one.event for one in after.events if one.event.event_type == GAP]
        assert [one.event_id for one in gaps] == [one.event_id for one in told]
        for one in gaps:
            assert (one.payload["reason"], one.payload["events"]) == ("collected", ["permissions_changed"])
            assert one.payload["from"] < one.payload["to"] == one.event_id

    def test_the_grants_of_a_group_that_is_deleted_are_taken_back(
        self, extension: PermissionEvents, database: Database
    ) -> None:
        create_group(database, "staff")
        for path in (("one",), ("two",)):
            grant(database, path, "staff", allow="-r------")
        seen = len(self.told(extension, database))
        delete_group(database, "staff")
        told = list(self.told(extension, database).values())[seen:]
        assert sorted(data.payload["path"] for data in told if data is not None) == ["/one", "/two"]


class TestIndexes(EventTypeContract):
    plugin_id = "query"

    @pytest.fixture
    def extension(self) -> IndexEvents:
        return IndexEvents()

    def happen(self, database: Database) -> None:
        with database.transaction() as changes:
            changes.put(("a", ".svc-config", "indexes.json"), b'{"indexes": []}')
            changes.put(("a", "indexes.json"), b"{}")

    def test_paths_that_were_merged_name_where_they_were_changed(self, database: Database) -> None:
        with database.transaction() as changes:
            changes.put(("gone",), b"1")
        place = feed_of(database).end()
        with database.transaction(actor="sync", message="merge") as changes:
            with changes.merging(Origin(7, "anna", 5)):
                changes.delete(("gone",))
                changes.put(("a",), b"1")
                changes.put((".svc-config", "indexes.json"), b'{"indexes": []}')
            with changes.merging(Origin(8)):
                changes.put(("b",), b"1")
            changes.put(("own",), b"1")
        batch = feed_of(database).after(place)
        assert batch is not None
        told = {one.event.event_type: one.event.payload for one in batch.events}
        anna = {"node_id": 7, "user_id": "anna", "timestamp": 5}
        assert told["entries_deleted"] == {"entries": [{"path": "/gone", "origin": anna}]}
        assert told["entries_created"]["entries"] == [
            {"path": "/own"},
            {"path": "/a", "origin": anna},
            {"path": "/.svc-config/indexes.json", "origin": anna},
            {"path": "/b", "origin": {"node_id": 8, "user_id": None, "timestamp": None}},
        ]
        assert told["indexes_changed"] == {"path": "/.svc-config/indexes.json", "origin": anna}


class TestShares(EventTypeContract):
    plugin_id = "sharing"
    beside = ("users", "auth.self")

    @pytest.fixture
    def extension(self) -> ShareEvents:
        return ShareEvents()

    def happen(self, database: Database) -> None:
        ann, bob = (create_user(database, name) for name in ("ann", "bob"))
        with database.transaction() as changes:
            changes.put(("one",), b"1")
            changes.put(("two",), b"2")
        wanted = NewShares(paths=["/one", "/two"], users=["ann", "bob"], permissions="-r------")
        share(database, wanted, most=10, actor=ann.user_id)
        assert bob.user_id != ann.user_id

    def test_each_path_is_told_to_each_user(self, extension: ShareEvents, database: Database) -> None:
        self.happen(database)
        told = [data for data in self.told(extension, database).values() if data is not None]
        assert {(data.payload["path"], data.recipient_user_id) for data in told} == {
            (path, recipient)
            for path in ("/one", "/two")
            for recipient in {data.recipient_user_id for data in told}
        }
        assert len(told) == 4
        assert {data.payload["permissions"] for data in told} == {"-r------"}
        assert {data.payload["from"] for data in told} == {told[0].user_id}
