"""Answers to random filters, orders and pages are those of the brute-force evaluator, for any caller."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from authorization_model.rules import Caller, Grant
from query_model.filters import queries, searches
from query_model.scale import SEED, scaled
from query_model.semantics import Match, Row
from query_model.service import Corpus, serving

ROOT = Caller(True, None, ())
USER = Caller(
    False,
    (
        Grant(("books",), None, "rl", ""),
        Grant(("books", "old"), None, "", "r"),
        Grant(("books", "old", "older"), None, "r", ""),
        Grant(("books", "a"), "*1*.json", "", "r"),
        Grant(("books", "new", "d7.json"), None, "", "r"),
    ),
    (),
)
KEY = Caller(
    True, None, (("/books/**/d1*", "--------"), ("/books/new/**", "-r--l---"), ("/books/*", "-r--l---"))
)
NARROW = Caller(False, USER.grants, (("/books/a/**", "-r------"),))
CALLERS = {"root": ROOT, "a user with grants": USER, "a scoped key": KEY, "a scoped key of a user": NARROW}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    with serving(tmp_path_factory.mktemp("model") / "x.svcdb", SEED) as served:
        yield served


def item(row: Row, how: Match) -> dict[str, Any]:
    return {
        "path": "/" + "/".join(row.path),
        "total_size": row.size,
        "content_type": row.content_type,
        "created_at": row.created,
        "updated_at": row.updated,
        "score": how[0],
        "matched_by": sorted(how[1]),
    }


def check(corpus: Corpus, query: dict[str, Any], caller: Caller) -> None:
    """Asks, and compares every member of the answer."""
    answer = corpus.post("/query", query, caller)
    if answer.status_code == 404:
        assert caller is not ROOT, (query, answer.text)
        assert corpus.expected({**query, "where": []}, caller) == [], query
        return
    assert answer.status_code == 200, (query, answer.status_code, answer.text)
    wanted = corpus.expected(query, caller)
    first = query.get("offset", 0)
    page = wanted[first : first + query["limit"]]
    found = answer.json
    assert found["results"] == [item(*one) for one in page], query
    assert found["has_more"] is (len(wanted) > first + query["limit"]), query
    assert found.get("total_count") == (len(wanted) if query.get("include_total") else None), query
    assert ("next_cursor" in found) is found["has_more"], query


@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", CALLERS)
def test_rows_are_those_of_the_evaluator(corpus: Corpus, name: str) -> None:
    @settings(max_examples=scaled(500 if name == "root" else 150))
    @given(queries())
    def compare(query: dict[str, Any]) -> None:
        check(corpus, query, CALLERS[name])

    compare()


@pytest.mark.timeout(0)
def test_rows_are_those_of_the_evaluator_between_writes(corpus: Corpus) -> None:
    """Each query comes right after a write that was acknowledged, and sees it."""

    @settings(max_examples=scaled(80))
    @given(st.lists(queries(), min_size=1, max_size=4), st.sampled_from(list(CALLERS)), st.integers(1, 30))
    def compare(asked: list[dict[str, Any]], name: str, writes: int) -> None:
        corpus.write(writes)
        for query in asked:
            check(corpus, query, CALLERS[name])

    compare()


@pytest.mark.timeout(0)
def test_files_with_words_are_those_of_the_evaluator(corpus: Corpus) -> None:
    @settings(max_examples=scaled(150))
    @given(searches(), st.sampled_from(list(CALLERS)))
    def compare(query: dict[str, Any], name: str) -> None:
        wanted = corpus.expected(query, CALLERS[name])
        if not wanted:
            return
        found = corpus.ask(query, CALLERS[name])["results"]
        assert [row["path"] for row in found] == ["/" + "/".join(row.path) for row, _ in wanted], query
        for row, (_, how) in zip(found, wanted, strict=True):
            assert row["matched_by"] == sorted(how[1]), query
            assert 0 < row["score"] <= 1, query

    compare()


@pytest.mark.timeout(0)
def test_pages_put_together_are_the_whole(corpus: Corpus) -> None:
    """Forward by ``after`` and back by ``before``."""

    @settings(max_examples=scaled(40))
    @given(queries(), st.sampled_from(list(CALLERS)), st.sampled_from([7, 19, 50]))
    def compare(query: dict[str, Any], name: str, limit: int) -> None:
        caller = CALLERS[name]
        query = {key: value for key, value in query.items() if key != "offset"} | {"limit": limit}
        wanted = ["/" + "/".join(row.path) for row, _ in corpus.expected(query, caller)]
        if not wanted:
            return
        pages = [corpus.ask(query, caller)]
        while pages[-1]["has_more"]:
            assert len(pages) <= len(wanted), query
            pages.append(corpus.ask({**query, "after": pages[-1]["next_cursor"]}, caller))
        assert [row["path"] for page in pages for row in page["results"]] == wanted, query
        if len(pages) > 1:
            place = random.Random(limit).randrange(1, len(pages))
            before = corpus.ask({**query, "before": pages[place]["prev_cursor"]}, caller)
            assert before["results"] == pages[place - 1]["results"], query

    compare()


AGGREGATED = st.lists(st.sampled_from(["year", "price", "@size", "mixed"]), max_size=2, unique=True)


@pytest.mark.timeout(0)
def test_sums_and_groups_are_those_of_the_evaluator(corpus: Corpus) -> None:
    @settings(max_examples=scaled(80))
    @given(
        queries(),
        st.sampled_from(list(CALLERS)),
        AGGREGATED,
        st.sampled_from([None, "open", "@extension", "year"]),
    )
    def compare(query: dict[str, Any], name: str, fields: list[str], group: str | None) -> None:
        wanted = [row for row, _ in corpus.expected(query, CALLERS[name])]
        if not wanted:
            return
        asked = dict.fromkeys(("sum", "avg", "min", "max"), fields) | {"count": True}
        query = {"path": query["path"], "where": query["where"], "limit": 1000}
        if group is None:
            found = corpus.ask({**query, "aggregate": asked}, CALLERS[name])
            assert_sums(found, wanted, fields, query)
            return
        found = corpus.ask({**query, "aggregate": {**asked, "group_by": [group]}}, CALLERS[name])
        groups: dict[str, list[Row]] = {}
        for row in wanted:
            for value in dict.fromkeys(map(repr, row.values(group))) or ["nothing"]:
                groups.setdefault(value, []).append(row)
        named = [repr(one["key"][group]) if group in one["key"] else "nothing" for one in found["groups"]]
        assert sorted(named) == sorted(groups), query
        assert found["has_more"] is False
        for value, one in zip(named, found["groups"], strict=True):
            assert_sums(one, groups[value], fields, query)

    compare()


def assert_sums(found: dict[str, Any], rows: list[Row], fields: list[str], query: dict[str, Any]) -> None:
    assert found["count"] == len(rows), query
    for field in fields:
        numbers = [
            value
            for row in rows
            for value in row.values(field)
            if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        if not numbers:
            continue
        total = sum(map(Fraction, numbers))
        assert found["sum"][field] == pytest.approx(float(total), rel=1e-9), (query, field)
        assert found["avg"][field] == pytest.approx(float(total / len(numbers)), rel=1e-9), (query, field)
        if field != "mixed":
            assert found["min"][field] == min(numbers), (query, field)
            assert found["max"][field] == max(numbers), (query, field)
