"""The page of the cluster keeps the contract of the portal, and lets one version of a path stand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from falcon.testing import TestClient
from svc_portal.testing import OWN_FORM, PortalPageContract, StateCardContract
from svc_sync.portal.pages import ClusterPage, PeersCard

from svc import Database

from .nodes import Node, Nodes  # noqa: TID252

HOSTILE = "<img src=x onerror=alert(1)>"


class OfACluster:
    """A node with a peer, and a file that both have written."""

    plugin_id = "sync"
    other: Nodes

    @pytest.fixture(autouse=True)
    def peer(self, tmp_path: Path) -> Iterator[None]:
        self.other = Nodes(tmp_path)
        try:
            yield
        finally:
            self.other.close()

    def fill(self, database: Database) -> None:
        a = self.node = Node(database)
        b = self.other.new()
        b.join(a)
        a.put(HOSTILE, b"of a")
        b.put(HOSTILE, b"of b, longer")
        a.pull(b)
        assert a.conflicts()


class TestClusterPage(OfACluster, PortalPageContract):
    urls = ("cluster", "cluster?after=/a")
    forms = (
        ("cluster", "action=trigger"),
        ("cluster", "action=pick&pick=loser&path=/nothing"),
        ("cluster", "action=pick&path=/nothing"),
    )

    @pytest.fixture
    def extension(self) -> ClusterPage:
        return ClusterPage()

    def test_a_conflict_is_shown_with_both_versions_and_resolved(
        self, served: tuple[TestClient, Any]
    ) -> None:
        client, _ = served
        text = client.simulate_get("/portal/cluster").text
        assert "4 bytes" in text
        assert "12 bytes" in text
        loser = {b"of a", b"of b, longer"} - {self.node.read(HOSTILE)}
        link = text.partition('href="/sync/conflicts/')[2].partition('"')[0]
        assert {client.simulate_get("/sync/conflicts/" + link.replace("&amp;", "&")).content} == loser
        version = text.partition('name="version" value="')[2].partition('"')[0]
        form = urlencode({"action": "pick", "pick": "loser", "path": f"/{HOSTILE}", "version": version})
        assert client.simulate_post("/portal/cluster", body=form, headers=OWN_FORM).status_code == 303
        assert {self.node.read(HOSTILE)} == loser
        assert "There are none." in client.simulate_get("/portal/cluster").text


class TestPeersCard(OfACluster, StateCardContract):
    @pytest.fixture
    def extension(self) -> PeersCard:
        return PeersCard()
