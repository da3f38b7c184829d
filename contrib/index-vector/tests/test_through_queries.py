"""Nearest neighbours through the driver: a real database, its index, and the route of queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from falcon.testing import TestClient
from svc_index_vector.descriptor import PLUGIN
from svc_query.indexing import finish_work

from svc_testing import load_with_testing_auth, serve_in_process

INDEXES = {
    "glob": "**/*.json",
    "indexes": [
        {"name": "place", "type": "vector", "value_type": "array", "dimensions": 2, "metric": "l2"},
        {"name": "kind", "type": "exact"},
    ],
}


class Places:
    """A database of places, asked over its routes."""

    def __init__(self, app: Any, database: Any) -> None:
        self.client = TestClient(app)
        self.database = database

    def write(self, files: Mapping[str, Any]) -> None:
        transaction = self.database.transaction()
        for path, value in files.items():
            transaction.put(
                tuple(path.split("/")), json.dumps(value).encode(), content_type="application/json"
            )
        transaction.commit()

    def ask(self, value: Any, *others: Any, **members: Any) -> Any:
        where = [{"field": "place", "op": "nearest", "value": value}, *others]
        return self.client.simulate_post(
            "/query", json={"path": "/places", "where": {"and": where}, **members}
        )

    def nearest(self, value: Sequence[float], *others: Any, **members: Any) -> list[str]:
        answer = self.ask(value, *others, **members)
        assert answer.status_code == 200, answer.text
        return [row["path"].rpartition("/")[2].removesuffix(".json") for row in answer.json["results"]]


@pytest.fixture
def places(tmp_path) -> Iterator[Places]:
    plugins = load_with_testing_auth("query", "parsers", "index.exact", PLUGIN.id)
    with serve_in_process(tmp_path / "places.svcdb", plugins) as (app, database, _):
        places = Places(app, database)
        places.write({"places/.svc-config/indexes.json": INDEXES})
        places.write(
            {
                f"places/d{number % 3}/{number}.json": {
                    "place": [number, 0.5],
                    "kind": "even" if number % 2 == 0 else "odd",
                }
                for number in range(60)
            }
        )
        yield places


def test_the_nearest_come_first_before_and_after_a_flush(places):
    even = {"field": "kind", "op": "eq", "value": "even"}
    for _ in range(2):
        assert places.nearest([20.2, 0.5], limit=4) == ["20", "21", "19", "22"]
        assert places.nearest([20.2, 0.5], even, limit=3) == ["20", "22", "18"]
        assert len(places.nearest([0, 0], even, limit=100)) == 30
        finish_work(places.database)
    places.write(
        {"places/new.json": {"place": [20.2, 0.5], "kind": "even"}, "places/d2/20.json": {"kind": "even"}}
    )
    assert places.nearest([20.2, 0.5], even, limit=3) == ["new", "22", "18"]


def test_pages_follow_each_other(places):
    finish_work(places.database)
    first = places.ask([0, 0.5], limit=25).json
    cursor = next(value for key, value in first.items() if "cursor" in key and value)
    second = places.ask([0, 0.5], limit=25, after=cursor).json
    rows = [
        row["path"].rpartition("/")[2].removesuffix(".json") for row in first["results"] + second["results"]
    ]
    assert rows == [str(number) for number in range(50)]


def test_a_vector_of_another_length_is_refused(places):
    answer = places.ask([1, 2, 3])
    assert (answer.status_code, answer.json["code"]) == (400, "INVALID_INPUT")
    assert "2 numbers" in answer.json["error"]
