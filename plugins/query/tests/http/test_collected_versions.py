"""Queries of collected versions, and of HEAD behind a collection that the index did not see coming."""

from __future__ import annotations

from typing import Any

import pytest
from svc_query.indexing import INDEX_VIEW

from svc_testing import simulate_collection


def paths(answer: dict[str, Any]) -> list[str]:
    return sorted(row["path"] for row in answer["results"])


@pytest.mark.parametrize("route", ["/query", "/files/search"])
def test_a_query_of_a_collected_version_says_so(http: Any, route: str) -> None:
    http.write({"/a.json": {"title": "one"}})
    old = http.database.head().root.hex()
    http.write({"/a.json": {"title": "two"}})
    simulate_collection(http.database)
    body = {"path": "/", "version": old, **({"where": []} if route == "/query" else {"query": "one"})}
    answer = http.post(route, body)
    assert (answer.status_code, answer.json["code"], answer.json["collected"]) == (404, "NOT_FOUND", True)


def test_an_index_that_lags_behind_the_horizon_is_brought_in_step(http: Any) -> None:
    http.write(
        {"/.svc-config/indexes.json": {"glob": "**/*", "indexes": [{"name": "title", "type": "exact"}]}}
    )
    http.write({"/a.json": {"title": "one"}, "/b.json": {"title": "one"}, "/c.json": {"title": "x"}})
    http.finish()
    held = http.database.view(INDEX_VIEW).applied
    http.write({"/a.json": {"title": "two"}, "/b.json": None})
    http.write({"/d.json": {"title": "one"}})
    simulate_collection(http.database)
    assert http.database.view(INDEX_VIEW).applied == held, "it has not seen them"
    http.finish()
    where = {"field": "title", "op": "eq", "value": "one"}
    assert paths(http.query(where)) == ["/d.json"]
    assert paths(http.query({**where, "value": "two"})) == ["/a.json"]
    assert paths(http.query({**where, "value": "x"})) == ["/c.json"]
