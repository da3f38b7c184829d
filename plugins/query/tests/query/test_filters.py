"""What a filter may look like, and what is said of one that may not."""

from __future__ import annotations

from typing import Any

import pytest
from svc_query.filters import MAXIMUM_LEAVES, MAXIMUM_NESTING, And, LeafFilter, Not, Or, parse_filter

from svc.errors import InvalidInput

LEAF = {"field": "year", "op": "eq", "value": 1}
PARSED = LeafFilter("year", "eq", 1, True, {})


def nested(depth: int) -> Any:
    value: Any = LEAF
    for _ in range(depth):
        value = {"not": value}
    return value


def test_an_array_at_the_top_is_an_and() -> None:
    assert parse_filter([LEAF, LEAF]) == And((PARSED, PARSED))
    assert parse_filter([]) == And(())


def test_combinators_hold_filters() -> None:
    assert parse_filter({"or": [LEAF, {"not": LEAF}, {"and": []}]}) == Or((PARSED, Not(PARSED), And(())))


def test_other_members_of_a_condition_are_options() -> None:
    leaf = parse_filter({**LEAF, "value2": 3, "threshold": 0.5})
    assert isinstance(leaf, LeafFilter)
    assert leaf.options == {"value2": 3, "threshold": 0.5}


def test_a_null_is_a_value() -> None:
    for given, has_value in (({"value": None}, True), ({}, False)):
        leaf = parse_filter({"field": "a", "op": "eq", **given})
        assert isinstance(leaf, LeafFilter)
        assert leaf.has_value is has_value


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (None, "where"),
        ("year > 3", "where"),
        (3, "where"),
        ({}, "where.field"),
        ({"field": "a"}, "where.op"),
        ({"op": "eq", "value": 1}, "where.field"),
        ({"field": 3, "op": "eq"}, "where.field"),
        ({"field": "", "op": "eq"}, "where.field"),
        ({"field": "a", "op": ["eq"]}, "where.op"),
        ({"and": LEAF}, "where"),
        ({"not": [LEAF]}, "where"),
        ({"and": [], "or": []}, "where"),
        ({"and": [], "field": "a", "op": "eq"}, "where"),
        ([[LEAF]], "where"),
        ({"or": [LEAF, 3]}, "where"),
    ],
)
def test_what_is_no_filter_is_refused_by_name(value: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_filter(value)
    assert refusal.value.details["field"] == field


def test_filters_nest_to_the_limit_and_no_further() -> None:
    parse_filter(nested(MAXIMUM_NESTING))
    with pytest.raises(InvalidInput) as refusal:
        parse_filter(nested(MAXIMUM_NESTING + 1))
    assert refusal.value.details["limit"] == MAXIMUM_NESTING


def test_filters_have_so_many_conditions_and_no_more() -> None:
    parse_filter([LEAF] * MAXIMUM_LEAVES)
    with pytest.raises(InvalidInput):
        parse_filter([LEAF] * (MAXIMUM_LEAVES + 1))
