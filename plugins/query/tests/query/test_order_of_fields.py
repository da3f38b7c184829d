"""Rows by several fields: the indexes' order is the one that sorting all rows gives, and costs a page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Any

import pytest
from svc_query.executing import ordered
from svc_query.executing.answering import Question, answer_query
from svc_query.executing.budget import Budget
from svc_query.executing.visibility import Caller
from svc_query.filters import parse_filter
from svc_query.ordering import OrderField, sort_key

from .memory_snapshot import OPERATORS, MemorySnapshot  # noqa: TID252

INDEXED: dict[str, Any] = {"a": {(): ["exact"]}, "b": {(): ["exact"]}, "c": {(): ["exact"]}}
RANGE = {"field": "b", "op": "gte", "value": 3}


def ask(snapshot: MemorySnapshot, where: Any, order: Sequence[OrderField], **members: Any) -> dict[str, Any]:
    budget = members.pop("budget", None) or Budget(60, 100_000)
    question = Question((), parse_filter(where), members.pop("limit", 7), order=tuple(order), **members)
    answer: dict[str, Any] = answer_query(
        snapshot, Caller.of_everything(()), question, OPERATORS, budget, b"id"
    ).body
    return answer


def some_documents() -> MemorySnapshot:
    """Documents with few values, several or none; a value of the first field is most frequent."""
    random = Random(7)

    def values(choice: Sequence[Any]) -> list[Any]:
        return random.choices(choice, k=random.choice([0, 1, 1, 1, 1, 2]))

    files = {
        (f"d{number % 3}", f"{number:03}"): {
            "a": values([1, 1, 1, 1, "x", None]),
            "b": values(range(6)),
            "c": values(["p", "q", True]),
        }
        for number in range(150)
    }
    return MemorySnapshot(files, INDEXED)


def sorted_paths(snapshot: MemorySnapshot, paths: Sequence[str], order: Sequence[OrderField]) -> list[str]:
    found = list(paths)
    values = {"/" + "/".join(path): held for path, held in snapshot.files.items()}
    found.sort(key=lambda path: path.split("/"))
    for name, descending in reversed(order):
        if name == "@path":
            found.sort(key=lambda path: path.split("/"), reverse=descending)
            continue
        have = [path for path in found if values[path].get(name)]
        pick = max if descending else min
        have.sort(
            key=lambda path, name=name, pick=pick: sort_key(pick(values[path][name], key=sort_key)),
            reverse=descending,
        )
        found = [*have, *(path for path in found if not values[path].get(name))]
    return found


def pages(snapshot: MemorySnapshot, where: Any, order: Sequence[OrderField]) -> list[str]:
    answer = ask(snapshot, where, order)
    paths = [row["path"] for row in answer["results"]]
    while answer["has_more"]:
        answer = ask(snapshot, where, order, after=answer["next_cursor"])
        paths += [row["path"] for row in answer["results"]]
    back = [row["path"] for row in answer["results"]]
    while answer.get("prev_cursor") and answer["results"]:
        answer = ask(snapshot, where, order, before=answer["prev_cursor"])
        back = [row["path"] for row in answer["results"]] + back
    assert back == paths
    return paths


@pytest.mark.parametrize("third", [None, OrderField("c"), OrderField("@path", descending=True)])
@pytest.mark.parametrize(("first", "second"), list(product([False, True], repeat=2)))
def test_the_order_of_indexes_is_the_order_of_the_rows(
    monkeypatch: pytest.MonkeyPatch, first: bool, second: bool, third: OrderField | None
) -> None:
    monkeypatch.setattr(ordered, "_FEW", 1)
    # Looking at a document is dear here, so that indexes are asked wherever they can be.
    monkeypatch.setattr(ordered, "_walks_terms", lambda *_: True)
    snapshot = some_documents()
    order = [OrderField("a", first), OrderField("b", second), *([third] if third else [])]
    for where in ([], RANGE):
        found = pages(snapshot, where, order)
        assert found == sorted_paths(snapshot, found, order)
        assert len(found) == len(set(found))
        assert len(found) == (
            150 if not where else ask(snapshot, where, order, include_total=True)["total_count"]
        )


def test_a_page_of_many_equal_rows_looks_at_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {(f"{number:05}",): {"a": ["x"], "b": [number * 7919 % 10_007]} for number in range(3_000)}
    snapshot = MemorySnapshot(files, INDEXED)
    looked_at: list[int] = []
    find = snapshot.document

    def document(number: int) -> Any:
        looked_at.append(number)
        return find(number)

    monkeypatch.setattr(snapshot, "document", document)
    order = [OrderField("a"), OrderField("b", descending=True)]
    answer = ask(snapshot, [], order, limit=10, budget=Budget(60, 1_000))
    highest = sorted(files.items(), key=lambda pair: -pair[1]["b"][0])
    assert [row["path"] for row in answer["results"]] == ["/" + path[0] for path, _ in highest[:10]]
    answer = ask(snapshot, [], order, limit=10, after=answer["next_cursor"])
    assert [row["path"] for row in answer["results"]] == ["/" + path[0] for path, _ in highest[10:20]]
    assert len(looked_at) < 100
