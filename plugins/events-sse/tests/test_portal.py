"""The page of events keeps the contract of the portal, and shows what its reader may see."""

from __future__ import annotations

from typing import Any

import pytest
from falcon.testing import TestClient
from svc_events_sse.portal.pages import EventsCard, EventsPage
from svc_portal.testing import PortalPageContract, StateCardContract

from svc.plugin import Database, Identity
from svc_testing import PathRights

HOSTILE = "<img src=x onerror=alert(1)>.txt"


def fill(database: Database) -> None:
    for number in range(3):
        with database.transaction() as changes:
            changes.put(("a", f"{number}.txt"), b"x")
    with database.transaction() as changes:
        changes.put(("b", HOSTILE), b"x")
        for number in range(9):
            changes.put(("b", f"{number}.txt"), b"x")


class TestEventsPage(PortalPageContract):
    plugin_id = "events.sse"
    beside = ("files",)
    is_for_everyone = True
    urls = ("events", "events?events=entries_created&path=/a", "events?events=%3Cb%3E")

    def fill(self, database: Database) -> None:
        fill(database)

    @pytest.fixture
    def extension(self) -> EventsPage:
        return EventsPage()

    def test_the_last_events_are_shown_the_newest_first(self, served: tuple[TestClient, Any]) -> None:
        text = served[0].simulate_get("/portal/events").text
        assert text.index("/b/") < text.index("/a/2.txt") < text.index("/a/1.txt")
        assert 'href="/portal/files/a/2.txt"' in text
        assert "and 5 more" in text
        assert 'data-place="000000000' in text

    def test_those_of_paths_that_the_reader_may_not_see_are_not(self, served: tuple[TestClient, Any]) -> None:
        client, mode = served
        user = "00000000-0000-0000-0000-000000000009"
        mode.identity = Identity(user_id=user, name="reader", rights=PathRights({"/a/1.txt": "rl"}))
        text = client.simulate_get("/portal/events").text
        assert "/a/1.txt" in text
        assert "/a/2.txt" not in text
        assert "/b/" not in text

    def test_a_type_that_is_not_there_is_said_to_be(self, served: tuple[TestClient, Any]) -> None:
        text = served[0].simulate_get("/portal/events?events=nothing").text
        assert 'role="alert"' in text
        assert "<table" not in text


class TestEventsCard(StateCardContract):
    plugin_id = "events.sse"

    def fill(self, database: Database) -> None:
        fill(database)

    @pytest.fixture
    def extension(self) -> EventsCard:
        return EventsCard()
