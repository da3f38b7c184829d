"""Pages over many rows, while others write: what did not change comes exactly once."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from query_model.scale import EXTENT, SEED, scaled
from query_model.service import Asking, ask_as_root

CONFIGURATION = {
    "glob": "**/*.json",
    "indexes": [
        {"name": "year", "type": "exact", "value_type": "integer"},
        {"name": "title", "type": ["exact", "trigram"]},
    ],
}
ORDERS: dict[str, list[dict[str, str]]] = {
    "by path": [],
    "by an index": [{"field": "year"}],
    "downward": [{"field": "year", "direction": "desc"}],
    "by two fields": [{"field": "title"}, {"field": "year", "direction": "desc"}],
}
FILTERS: dict[str, Any] = {
    "all": [],
    "a range": {"field": "year", "op": "gte", "value": 1900},
    "a part of a text": {"field": "title", "op": "contains", "value": "ar"},
}


class Many:
    """Many small documents, some of which are never changed."""

    def __init__(self, asking: Asking, count: int) -> None:
        self._asking = asking
        self._rng = random.Random(SEED)
        self._count = count
        self.contents: dict[tuple[str, ...], dict[str, Any]] = {}
        self._next = count
        for start in range(0, count, 1000):
            with asking.database.transaction() as transaction:
                for number in range(start, min(start + 1000, count)):
                    self._put(transaction, number)

    def _put(self, transaction: Any, number: int) -> None:
        content = {
            "year": self._rng.choice([self._rng.randint(1800, 2020), self._rng.randint(1990, 1993)]),
            "title": self._rng.choice(["war", "peace", "warm", "art"]),
        }
        path = ("docs", f"d{number % 7}", f"n{number}.json")
        transaction.put(path, json.dumps(content).encode(), content_type="application/json")
        self.contents[path] = content

    def disturb(self, count: int) -> set[tuple[str, ...]]:
        """Changes, removes and adds some documents in one commit; returns their paths."""
        touched = set()
        with self._asking.database.transaction() as transaction:
            for path in self._rng.sample(sorted(self.contents), count):
                touched.add(path)
                if self._rng.random() < 0.4:
                    transaction.delete(path)
                    del self.contents[path]
                else:
                    self._put(transaction, int(path[-1][1:-5]))
            for _ in range(count):
                self._put(transaction, self._next)
                touched.add(("docs", f"d{self._next % 7}", f"n{self._next}.json"))
                self._next += 1
        return touched

    def meeting(self, where: Any) -> set[tuple[str, ...]]:
        holds = {
            "gte": lambda content: content["year"] >= 1900,
            "contains": lambda content: "ar" in content["title"],
        }
        if not where:
            return set(self.contents)
        return {path for path, content in self.contents.items() if holds[where["op"]](content)}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Asking, Many]]:
    with ask_as_root(tmp_path_factory.mktemp("cursors") / "x.svcdb", {"docs": CONFIGURATION}) as asking:
        documents = Many(asking, scaled(1_000, most=100_000))
        asking.index()
        yield asking, documents


@pytest.mark.timeout(0 if EXTENT.scale > 1 else 120)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
def test_rows_that_do_not_change_come_exactly_once(
    many: tuple[Asking, Many], order: str, where: str, backward: bool
) -> None:
    asking, documents = many
    before = documents.meeting(FILTERS[where])
    limit = max(97, len(before) // 12)
    query = {"path": "/docs", "where": FILTERS[where], "order_by": ORDERS[order], "limit": min(limit, 1000)}
    if backward:
        # From behind the last row: the last page forward tells where that is.
        whole = list(pages(asking, query, "after", "next_cursor"))
        query["before"] = whole[-1]["prev_cursor"]
        behind = {row["path"] for row in whole[-1]["results"]}
        before = {path for path in before if "/" + "/".join(path) not in behind}
    seen: list[str] = []
    disturbed: set[tuple[str, ...]] = set()
    words = ("before", "prev_cursor") if backward else ("after", "next_cursor")
    for page in pages(asking, query, *words):
        found = [row["path"] for row in page["results"]]
        seen = [*found, *seen] if backward else [*seen, *found]
        disturbed |= documents.disturb(5)
    still = {"/" + "/".join(path) for path in before - disturbed}
    places = {"/" + "/".join(path) for path in disturbed}
    unchanged = [path for path in seen if path not in places]
    assert len(unchanged) == len(set(unchanged)), "a row came twice"
    assert set(unchanged) == still, (len(still - set(unchanged)), "rows were skipped")


def pages(asking: Asking, query: dict[str, Any], word: str, cursor: str) -> Iterator[dict[str, Any]]:
    for _ in range(5_000):
        page = asking.ask(query)
        yield page
        if cursor not in page or not page["results"]:
            return
        if word == "after" and not page["has_more"]:
            return
        query = {**query, word: page[cursor]}
    raise AssertionError("the pages do not end")


def test_a_cursor_of_another_query_or_of_nobody_is_refused(many: tuple[Asking, Many], tmp_path: Path) -> None:
    asking, _ = many
    query = {"path": "/docs", "where": [], "limit": 3, "order_by": [{"field": "year"}]}
    cursor = asking.ask(query)["next_cursor"]
    for wrong in ("", "x", cursor[:-2], cursor + "A", cursor[::-1], cursor.swapcase()):
        answer = asking.post({**query, "after": wrong})
        assert answer.status_code == 400, (wrong, answer.text)
    other = asking.post({**query, "order_by": [{"field": "title"}], "after": cursor})
    assert other.status_code == 400, other.text
