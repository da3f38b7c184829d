"""A database in this process that answers queries over real documents."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from falcon.testing import TestClient

from query_model.semantics import Row
from query_model.service import plugins
from svc.database import Database
from svc_testing import serve_in_process

Json = Any


class Served:
    """Documents in a database, and the rows that a look at each of them would see."""

    def __init__(self, app: Any) -> None:
        self._client = TestClient(app)
        self.rows: list[Row] = []

    def paths(self, path: str, where: Json) -> set[str]:
        """The paths that a query finds, page by page."""
        found: list[str] = []
        query: dict[str, Json] = {
            "path": path,
            "where": where,
            "limit": 1000,
            "order_by": [{"field": "@path"}],
        }
        while True:
            answer = self._client.simulate_post("/query", json=query)
            assert answer.status_code == 200, (query, answer.text)
            found += [row["path"] for row in answer.json["results"]]
            if not answer.json["has_more"]:
                assert len(set(found)) == len(found)
                return set(found)
            query["after"] = answer.json["next_cursor"]

    def best(self, where: Json, limit: int = 10) -> list[str]:
        answer = self._client.simulate_post("/query", json={"path": "/", "where": where, "limit": limit})
        assert answer.status_code == 200, answer.text
        return [row["path"] for row in answer.json["results"]]

    def expected(self, holds: Callable[[Row], bool]) -> set[str]:
        # Configuration is no document.
        rows = (row for row in self.rows if ".svc-config" not in row.path)
        return {"/" + "/".join(row.path) for row in rows if holds(row)}


@contextmanager
def served(path: Path, configuration: Json) -> Iterator[tuple[Served, Database]]:
    with serve_in_process(path, plugins()) as (app, database, _):
        with database.transaction() as transaction:
            transaction.put(
                (".svc-config", "indexes.json"),
                json.dumps(configuration).encode(),
                content_type="application/json",
            )
        yield Served(app), database


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case and without accents."""
    plain = unicodedata.normalize("NFKD", text.lower())
    return re.findall(r"[^\W_]+", "".join(one for one in plain if not unicodedata.combining(one)))


def leaf(field: str, op: str, value: Json, **options: Json) -> dict[str, Json]:
    return {"field": field, "op": op, "value": value, **options}
