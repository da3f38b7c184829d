"""The page and the card of verifications: what is damaged, and the button that looks again."""

from __future__ import annotations

from typing import Any

import pytest
from falcon.testing import TestClient
from svc_portal.testing import PortalPageContract, StateCardContract
from svc_task_verify.portal.verification import VerificationCard, VerificationPage
from svc_task_verify.record import Found, write_found

from svc.plugin import Database


class OfVerifications:
    plugin_id = "task.verify"
    beside = ("tasks",)

    def fill(self, database: Database) -> None:
        self.database = database


class TestVerificationPage(OfVerifications, PortalPageContract):
    urls = ("verification",)

    @pytest.fixture
    def extension(self) -> VerificationPage:
        return VerificationPage()

    def test_damaged_paths_are_named(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        assert "Nothing is known to be damaged." in client.simulate_get("/portal/verification").text
        assert 'action="/portal/tasks/new/verify"' in client.simulate_get("/portal/verification").text
        found = Found(
            at=1_700_000_000_000, count=2, paths=["/a/<b>"], hashes=["ab"], regions=[(7, 9)], commits=[3]
        )
        write_found(self.database, found, None)
        page = client.simulate_get("/portal/verification")
        self.check(page, "verification")
        for text in ("2 things were found damaged", "/a/&lt;b&gt;", "7 to 9", "svc verify --repair"):
            assert text in page.text
        assert "2 things were found damaged" in client.simulate_get("/portal/state").text
        answer = client.simulate_get("/system/verification").json["damage"]
        assert (answer["count"], answer["paths"], answer["commits"]) == (2, ["/a/<b>"], [3])


class TestVerificationCard(OfVerifications, StateCardContract):
    @pytest.fixture
    def extension(self) -> VerificationCard:
        return VerificationCard()
