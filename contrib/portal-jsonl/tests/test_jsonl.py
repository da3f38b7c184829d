"""The contracts of the portal's families, and what these two show."""

from __future__ import annotations

from typing import Any

import pytest
from falcon.testing import TestClient
from svc_portal.testing import PortalPageContract, PreviewContract
from svc_portal_jsonl.rows import table_of
from svc_portal_jsonl.showing import LinesPage, LinesPreview

from svc.plugin import Database
from svc_testing import PluginContract

ROWS = b'{"name": "<b>one</b>", "count": 1}\n{"name": "two", "more": [1]}\n"text"\nno json\n'


class TestPlugin(PluginContract):
    plugin_id = "portal.jsonl"


class TestLinesPreview(PreviewContract):
    plugin_id = "portal.jsonl"

    @pytest.fixture
    def extension(self) -> LinesPreview:
        return LinesPreview()


class TestLinesPage(PortalPageContract):
    plugin_id = "portal.jsonl"
    urls = ("jsonl/a/rows.jsonl", "files/a/rows.jsonl")

    @pytest.fixture
    def extension(self) -> LinesPage:
        return LinesPage()

    def fill(self, database: Database) -> None:
        with database.transaction() as changes:
            changes.put(("a", "rows.jsonl"), ROWS, content_type="application/jsonl")
            changes.put(("a", "long.jsonl"), b'{"n": 1}\n' * 30, content_type="application/jsonl")
            changes.put(("a", "text.txt"), b"x", content_type="text/plain")

    # Whoever was granted nothing is refused by the operation: 403, as over HTTP.
    test_it_is_refused_as_if_it_were_missing = None

    def test_the_preview_leads_to_the_page(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        preview = client.simulate_get("/portal/files/a/long.jsonl").text
        assert preview.count("<td>1</td>") == 20
        assert 'href="/portal/jsonl/a/long.jsonl"' in preview
        assert client.simulate_get("/portal/jsonl/a/long.jsonl").text.count("<td>1</td>") == 30

    def test_what_is_in_a_file_is_text(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        page = client.simulate_get("/portal/jsonl/a/rows.jsonl").text
        assert "&lt;b&gt;one&lt;/b&gt;" in page
        assert '<td colspan="3">no json</td>' in page
        for other in ("a/text.txt", "a", "none"):
            assert client.simulate_get(f"/portal/jsonl/{other}").status_code == 404, other


def test_a_line_that_was_cut_is_left_out() -> None:
    whole, cut = (table_of(ROWS[:50], 9, is_whole=is_whole) for is_whole in (True, False))
    assert (len(whole.rows), whole.has_more) == (2, False)
    assert (len(cut.rows), cut.has_more) == (1, True)
    assert cut.columns == ["name", "count"]
    assert table_of(ROWS, 2, is_whole=True).has_more
