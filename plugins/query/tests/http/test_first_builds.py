"""A directory whose first index is being made: queries wait for it, and go on where that takes too long."""

from __future__ import annotations

from typing import Any

import pytest
from svc_query.indexing import INDEX_VIEW, applying

CONFIGURATION = {"glob": "**/*.json", "indexes": [{"name": "t", "type": "exact"}]}
WHERE = {"field": "t", "op": "eq", "value": "x"}


@pytest.fixture
def building(http: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A directory of many files that has just got its first configuration."""
    monkeypatch.setattr(applying, "LARGE_DIRECTORY", 20)
    monkeypatch.setattr(applying, "SMALL_DIRECTORY", 20)
    http.write({f"/d/{number}.json": {"t": "x"} for number in range(100)})
    http.finish()
    http.write({"/d/.svc-config/indexes.json": CONFIGURATION})
    return http


def test_a_query_waits_for_the_first_index(building: Any) -> None:
    found = building.query(WHERE, "/d", limit=1, include_total=True)
    assert found["total_count"] == 100
    assert "meta" not in found


def test_who_wants_no_wait_is_answered_at_once_with_what_is_there(building: Any) -> None:
    building.database.view(INDEX_VIEW).catch_up()
    found = building.query(WHERE, "/d", consistency="eventual")
    assert found["meta"]["reindexing"] is True


def test_a_build_that_nobody_is_at_is_not_waited_for(building: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from svc_query.indexing import reading

    monkeypatch.setattr(reading, "_STANDING_SECONDS", 0.05)
    monkeypatch.setattr(reading, "_may_work", lambda: False)
    found = building.query(WHERE, "/d")
    assert found["meta"]["reindexing"] is True
    building.finish()
    assert "meta" not in building.query(WHERE, "/d")
