"""The pages of tasks and schedules keep the contracts of the portal, and do what they say."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from falcon.testing import TestClient
from svc_portal.api import PortalPage
from svc_portal.testing import PortalPageContract, StateCardContract, follow, send_form
from svc_task_gc.task import GcTask
from svc_tasks.api import enqueue
from svc_tasks.portal.card import TasksCard
from svc_tasks.portal.schedules import SchedulesPage
from svc_tasks.portal.tasks import NewTaskPage, TaskPage, TasksPage

from svc.plugin import Database

SCHEDULE = "action=schedule&argument-keep_days=3&id=nightly&schedule=30 3 * * *".replace(" ", "+")


class OfTasks(PortalPageContract):
    plugin_id = "tasks"
    beside = ("task.gc",)


class TestTasksPage(OfTasks):
    urls = ("tasks", "tasks?status=failed", "tasks?type=gc&status=" + quote("<b>"))

    def fill(self, database: Database) -> None:
        enqueue(database, GcTask(), {"dry_run": True})

    @pytest.fixture
    def extension(self) -> PortalPage:
        return TasksPage()


class TestNewTaskPage(OfTasks):
    urls = ("tasks/new/gc",)
    forms = (
        ("tasks/new/gc", "action=start&argument-dry_run=1"),
        ("tasks/new/gc", "action=start&argument-keep_days=" + quote("<script>")),
        ("tasks/new/gc", SCHEDULE),
        ("tasks/new/gc", "action=schedule"),
    )

    @pytest.fixture
    def extension(self) -> PortalPage:
        return NewTaskPage()

    def test_a_task_is_started_shown_and_cancelled(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        started = send_form(client, "tasks/new/gc", "action=start&argument-dry_run=1&argument-keep_days=2.5")
        page = client.simulate_get(started.headers["location"]).text
        assert "<dt>Argument dry_run</dt><dd>true</dd>" in page
        assert "<dt>Argument keep_days</dt><dd>2.5</dd>" in page
        assert 'data-live="2"' in page
        task = started.headers["location"].removeprefix("/portal/")
        assert "was cancelled" in follow(client, send_form(client, task, "action=cancel"))
        ended = client.simulate_get(started.headers["location"]).text
        assert "data-live" not in ended

    def test_what_is_wrong_is_said_above_the_form_that_keeps_what_it_has(
        self, served: tuple[TestClient, Any]
    ) -> None:
        text = send_form(served[0], "tasks/new/gc", "action=start&argument-keep_days=soon&id=x").text
        assert "The argument keep_days is no number, and no JSON." in text
        assert 'value="soon"' in text
        assert 'name="id" value="x"' in text

    def test_there_is_no_page_for_a_type_that_is_not_there(self, served: tuple[TestClient, Any]) -> None:
        assert served[0].simulate_get("/portal/tasks/new/nothing").status_code == 404


class TestTaskPage(OfTasks):
    @pytest.fixture
    def extension(self) -> PortalPage:
        return TaskPage()

    @pytest.fixture(autouse=True)
    def task(self, served: tuple[TestClient, Any]) -> None:
        started = send_form(served[0], "tasks/new/gc", "action=start")
        url = started.headers["location"].removeprefix("/portal/")
        self.urls, self.forms = (url,), ((url, "action=cancel"),)  # type: ignore[misc]


class TestSchedulesPage(OfTasks):
    urls = ("schedules",)
    forms = (("schedules", "action=remove&id=nothing"),)

    @pytest.fixture
    def extension(self) -> PortalPage:
        return SchedulesPage()

    def test_a_schedule_is_added_changed_disabled_removed_and_added_again(
        self, served: tuple[TestClient, Any]
    ) -> None:
        client, _ = served
        added = follow(client, send_form(client, "tasks/new/gc", SCHEDULE))
        assert "Added the schedule nightly." in added
        assert added.count("<time") == 3
        change = "action=change&id=nightly&schedule=0+4+*+*+*"
        assert "is 0 4 * * * now" in follow(client, send_form(client, "schedules", change))
        assert "five fields" in follow(client, send_form(client, "schedules", change.replace("+*+*", "")))
        assert "none while it is disabled" in follow(
            client, send_form(client, "schedules", "action=disable&id=nightly")
        )
        assert "enabled" in follow(client, send_form(client, "schedules", "action=enable&id=nightly"))
        removed = follow(client, send_form(client, "schedules", "action=remove&id=nightly"))
        assert "There are no schedules." in removed
        of = removed.partition('name="of" value="')[2].partition('"')[0].replace("&#34;", '"')
        again = follow(client, send_form(client, "schedules", "action=add&of=" + quote(of)))
        assert "0 4 * * *" in again
        assert "keep_days&#34;:3" in again


class TestTasksCard(StateCardContract):
    plugin_id = "tasks"
    beside = ("task.gc",)

    def fill(self, database: Database) -> None:
        enqueue(database, GcTask(), {"dry_run": True})

    @pytest.fixture
    def extension(self) -> TasksCard:
        return TasksCard()
