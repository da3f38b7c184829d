"""The page and the card of collections: what goes, what went, and the button."""

from __future__ import annotations

from typing import Any

import pytest
from falcon.testing import TestClient
from svc_portal.testing import OWN_FORM, PortalPageContract, StateCardContract
from svc_task_gc.portal.collection import CollectionCard, CollectionPage

from svc.plugin import Database


class OfCollections:
    plugin_id = "task.gc"

    def fill(self, database: Database) -> None:
        for number in range(3):
            with database.transaction() as changes:
                changes.put(("a",), b"%d" % number)


class TestCollectionPage(OfCollections, PortalPageContract):
    urls = ("collection", "collection?keep_days=1")

    @pytest.fixture
    def extension(self) -> CollectionPage:
        return CollectionPage()

    def test_it_says_which_versions_go(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        preview = client.simulate_get("/system/gc").json
        assert preview["last"] - preview["first"] + 1 == preview["versions"] > 0
        page = client.simulate_get("/portal/collection").text
        assert f"lets {preview['versions']} versions go" in page
        assert "No version goes" in client.simulate_get("/portal/collection?keep_days=1").text
        assert client.simulate_get("/portal/collection?keep_days=x").status_code == 400


class TestWithTasks(OfCollections, PortalPageContract):
    urls = ("collection",)
    beside = ("tasks",)

    @pytest.fixture
    def extension(self) -> CollectionPage:
        return CollectionPage()

    def test_the_buttons_start_tasks(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        assert 'action="/portal/tasks/new/gc"' in client.simulate_get("/portal/collection").text
        form = "action=start&argument-dry_run=1&argument-keep_days=2"
        started = client.simulate_post("/portal/tasks/new/gc", body=form, headers=OWN_FORM)
        assert started.status_code == 303
        (task,) = client.simulate_get("/system/tasks").json["tasks"]
        assert task["args"] == {"dry_run": True, "keep_days": 2}
        assert f"/portal/tasks/{task['id']}" in client.simulate_get("/portal/collection").text


class TestCollectionCard(OfCollections, StateCardContract):
    @pytest.fixture
    def extension(self) -> CollectionCard:
        return CollectionCard()
