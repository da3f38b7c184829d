"""What surrounds the rows: budgets, reindexing, plans, aggregates, projections, on documents in memory."""

from __future__ import annotations

from typing import Any

import pytest
from svc_query.aggregation import Aggregates
from svc_query.executing import answering, budget
from svc_query.executing.answering import Question, answer_query
from svc_query.executing.budget import Budget
from svc_query.executing.visibility import Caller
from svc_query.filters import parse_filter
from svc_query.ordering import OrderField
from svc_query.planning.nodes import LeafNode
from svc_query.snapshot import Progress

from svc.errors import InvalidInput, ServiceUnavailable

from .memory_snapshot import OPERATORS, MemorySnapshot, Terms  # noqa: TID252

INDEXED: dict[str, Any] = {"n": {(): ["exact"]}, "t": {(): ["trigram"]}}
EVERYTHING = Caller.of_everything(())
SOMEBODY = Caller(((("d1",), True),), lambda path: path[0] == "d1", sees_all=False)


def many(count: int, **members: Any) -> MemorySnapshot:
    files = {(f"d{n % 3}", f"{n:05}"): {"n": [n], "t": [f"text {n}"]} for n in range(count)}
    return MemorySnapshot(files, INDEXED, **members)


def ask(
    snapshot: Any, where: Any, caller: Caller = EVERYTHING, budget: Budget | None = None, **members: Any
) -> Any:
    question = Question((), parse_filter(where), members.pop("limit", 10), **members)
    return answer_query(snapshot, caller, question, OPERATORS, budget or Budget(60, 1_000), b"id").body


def leaf(field: str, op: str, value: Any = None) -> dict[str, Any]:
    return {"field": field, "op": op, "value": value}


class Clock:
    """A clock that goes on by a second whenever it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_a_query_that_takes_too_long_is_ended_in_words() -> None:
    with pytest.raises(ServiceUnavailable) as ended:
        ask(many(3_000), leaf("@filename", "eq", "x"), budget=Budget(5, 10_000, clock=Clock()))
    assert "5 seconds" in ended.value.message


def test_others_have_their_turn_while_a_query_works(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = []
    monkeypatch.setattr(budget, "pause", lambda: turns.append(1))
    ask(many(2_000), leaf("@filename", "eq", "x"), budget=Budget(60, 10_000))
    assert len(turns) >= 2_000 // 256


def test_who_leaves_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Left(BaseException):
        pass

    def leave() -> None:
        raise Left

    monkeypatch.setattr(budget, "pause", leave)
    with pytest.raises(Left):
        ask(many(2_000), leaf("@filename", "eq", "x"), budget=Budget(60, 10_000))


class Hand:
    """A clock that goes on when work is done."""

    def __init__(self) -> None:
        self.now = 0.0
        self.done = 0

    def __call__(self) -> float:
        return self.now

    def work(self, function: Any) -> Any:
        def working(*arguments: Any, **members: Any) -> Any:
            self.now += 0.1
            self.done += 1
            return function(*arguments, **members)

        return working


def test_the_time_holds_among_the_conditions_of_one_document(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Hand()
    monkeypatch.setattr(LeafNode, "test", clock.work(LeafNode.test))
    where = {"or": [leaf("@filename", "eq", f"x{number}") for number in range(1_000)]}
    with pytest.raises(ServiceUnavailable):
        ask(many(3), where, budget=Budget(5, 10_000, clock=clock))
    assert clock.done <= 52


@pytest.mark.parametrize("answer", ["postings_range", "count_range"])
def test_the_time_holds_among_the_answers_of_indexes(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    clock = Hand()
    monkeypatch.setattr(Terms, answer, clock.work(getattr(Terms, answer)))
    where = {"or": [leaf("n", "eq", number) for number in range(1_000)]}
    with pytest.raises(ServiceUnavailable):
        ask(many(3_000), where, budget=Budget(5, 10_000, clock=clock), include_total=True)
    assert clock.done <= 60


def test_a_walk_goes_so_far_and_gives_a_cursor_to_go_on() -> None:
    snapshot, where = many(100), leaf("@filename", "eq", "00099")
    seen: list[str] = []
    answer: dict[str, Any] = {"has_more": True}
    pages = 0
    while answer["has_more"]:
        place = {"after": answer["next_cursor"]} if pages else {}
        answer = ask(snapshot, where, budget=Budget(60, 30), **place)
        seen += [row["path"] for row in answer["results"]]
        pages += 1
        assert pages < 10
    assert seen == ["/d0/00099"]
    assert pages == 4


def test_too_much_to_sort_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput) as refused:
        ask(many(100), [], order=(OrderField("t"),), budget=Budget(60, 99))
    assert refused.value.details["limit"] == 99
    with pytest.raises(InvalidInput):
        ask(many(100), leaf("@filename", "eq", "x"), include_total=True, budget=Budget(60, 99))
    assert ask(many(100), [], order=(OrderField("n"),), budget=Budget(60, 99))["results"]


@pytest.mark.parametrize("caller", [EVERYTHING, SOMEBODY], ids=["all", "some"])
def test_progress_of_a_reindex_is_told(caller: Caller) -> None:
    snapshot = many(10, reindexing=Progress(25, 100, 1_700_000_000_000, 1_700_000_009_000))
    meta = ask(snapshot, [], caller)["meta"]
    assert meta["reindexing"] is True
    assert meta["reindexing_stale_since"] == 1_700_000_000_000
    if caller is EVERYTHING:
        assert meta["reindexing_progress"] == 0.25
        assert (meta["reindexing_indexed"], meta["reindexing_total"]) == (25, 100)
        assert meta["reindexing_eta"] == 1_700_000_009_000
    else:  # how many files there are is not for everybody
        assert set(meta) == {"reindexing", "reindexing_stale_since"}
    assert "meta" not in ask(many(10), [], caller)


def test_a_place_without_configurations_is_answered() -> None:
    assert len(ask(MemorySnapshot({("a",): {}}, {}), [])["results"]) == 1


def test_a_plan_says_how_rows_are_found() -> None:
    snapshot = many(3_000)

    def strategy(where: Any, **members: Any) -> str:
        found: str = ask(snapshot, where, explain="plan", **members)["plan"]["strategy"]
        return found

    assert strategy([]) == "path order"
    assert strategy(leaf("n", "eq", 3)) == "sort"
    assert strategy([], order=(OrderField("n"),)) == "index order"
    assert strategy(leaf("n", "lt", 5), order=(OrderField("n"),)) == "sort"
    tree = ask(snapshot, leaf("@filename", "eq", "x"), explain="plan")["plan"]["children"][0]
    assert tree["index"] == "walk"
    assert tree["estimated_rows"] == 3_000


def test_a_wide_range_in_its_own_order_begins_where_the_range_does() -> None:
    snapshot = many(5_000)
    looked_at = []
    reader = snapshot.indexes("n")[0].reader
    scan = reader.scan

    def counting(low: Any = None, high: Any = None, *, reverse: bool = False) -> Any:
        for row in scan(low, high, reverse=reverse):
            looked_at.append(row)
            yield row

    reader.scan = counting
    answer = ask(snapshot, leaf("n", "gte", 2_000), order=(OrderField("n"),), limit=5)
    assert [row["path"][-5:] for row in answer["results"]] == ["02000", "02001", "02002", "02003", "02004"]
    assert len(looked_at) < 20


def test_sums_are_exact_and_rounded_once() -> None:
    values = [[0.1] * 10, [2**60, 1], [1e16, 1.0, -1e16], [True, "5", None], []]
    snapshot = MemorySnapshot({(str(n),): {"n": list(one)} for n, one in enumerate(values)}, INDEXED)
    wanted = Aggregates(True, ("n",), ("n",), ("n",), ("n",))

    def sums(name: str) -> dict[str, Any]:
        found: dict[str, Any] = ask(snapshot, leaf("@filename", "eq", name), aggregates=wanted)
        return found

    assert sums("0")["sum"]["n"] == 1.0
    assert sums("1")["sum"]["n"] == 2**60 + 1
    assert sums("2")["sum"]["n"] == 1.0
    assert sums("3")["sum"]["n"] == 0
    assert sums("3")["avg"]["n"] is None
    assert sums("3")["min"]["n"] is True
    assert sums("4") == {
        "count": 1,
        "sum": {"n": 0},
        "avg": {"n": None},
        "min": {"n": None},
        "max": {"n": None},
    }
    huge = MemorySnapshot({("a",): {"n": [1e308, 1e308]}}, INDEXED)
    assert ask(huge, [], aggregates=wanted)["sum"]["n"] is None


def test_too_many_groups_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc_query.aggregation._MOST_GROUPS", 9)
    wanted = Aggregates(counts=True, groups=("n",))
    with pytest.raises(InvalidInput):
        ask(many(10), [], aggregates=wanted)
    assert len(ask(many(9), [], aggregates=wanted)["groups"]) == 9


def test_groups_come_in_pages_and_orders() -> None:
    files = {(str(n),): {"n": [n % 4] if n % 5 else [], "t": ["x"]} for n in range(20)}
    snapshot = MemorySnapshot(files, INDEXED)
    wanted = Aggregates(counts=True, groups=("n",))
    first = ask(snapshot, [], aggregates=wanted, limit=3, include_total=True)
    assert [group["key"] for group in first["groups"]] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert first["has_more"] is True
    assert first["total_count"] == 5
    second = ask(snapshot, [], aggregates=wanted, limit=3, offset=3)
    assert [group["key"] for group in second["groups"]] == [{"n": 3}, {}]
    assert second["has_more"] is False
    down = ask(snapshot, [], aggregates=wanted, order=(OrderField("n", descending=True),))
    assert [group["key"] for group in down["groups"]] == [{"n": 3}, {"n": 2}, {"n": 1}, {"n": 0}, {}]


def test_a_caller_of_very_many_places_is_answered() -> None:
    parts = tuple(((f"d{n}",), True) for n in range(3_000))
    caller = Caller(parts, lambda path: True, sees_all=False)
    assert len(ask(many(30), [], caller, limit=100)["results"]) == 30
    assert answering.coverage_for(many(30), caller, ()).fields
