"""The plugin by its contracts, and its operators beside Python's own comparisons."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from svc_index_exact.encoding import encode_value, is_exact
from svc_index_exact.index import ExactIndex
from svc_index_exact.operators import MAXIMUM_VALUES, OPERATORS
from svc_query.api import Leaf
from svc_query.testing.terms import TermIndexTypeContract, any_values, texts

from svc.errors import InvalidInput
from svc_testing import PluginContract

NUMBERS = st.one_of(
    st.integers(-3, 3), st.integers(2**53 - 2, 2**53 + 2), st.integers(), st.floats(allow_nan=False),
    st.integers(-(2**9_000), 2**9_000),
)  # fmt: skip
SCALARS = st.one_of(NUMBERS, texts(), st.booleans(), st.none())
LONG = st.sampled_from(
    ["x" * 1_022, "x" * 1_023, "x" * 1_024, "x" * 5_000, "ж" * 511, "ж" * 512, "ж" * 3_000]
)
BY_NAME = {operator.name: operator() for operator in OPERATORS}


def compile_leaf(op, value=None, value_type="auto", **options):
    return BY_NAME[op].compile(Leaf("f", op, value, options, value_type))


class TestExactPlugin(PluginContract):
    plugin_id = "index.exact"


class TestExactIndex(TermIndexTypeContract):
    plugin_id = "index.exact"
    operators = tuple(BY_NAME.values())
    bad_leaves = (
        *(Leaf("f", op, {"a": 1}) for op in ("eq", "ne", "gt", "gte", "lt", "lte", "prefix", "in")),
        *(Leaf("f", op, value) for op in ("gt", "gte", "lt", "lte") for value in (None, True, [1], math.nan)),
        *(
            Leaf("f", "between", low, {"value2": high})
            for low, high in ((1, "a"), ("a", 1), (None, 1), (1, False))
        ),
        Leaf("f", "between", 1),
        Leaf("f", "eq", [1]),
        Leaf("f", "eq", math.nan),
        Leaf("f", "in", "abc"),
        Leaf("f", "in", [1, [2]]),
        Leaf("f", "in", list(range(MAXIMUM_VALUES + 1))),
        Leaf("f", "prefix", 5),
        Leaf("f", "prefix", "1", value_type="timestamp"),
        Leaf("f", "gt", "yesterday", value_type="timestamp"),
        Leaf("f", "eq", "2026-13-01", value_type="timestamp"),
    )

    @pytest.fixture
    def extension(self):
        return ExactIndex()

    def values(self):
        return st.one_of(any_values(), LONG)

    def leaves(self):
        scalars = st.one_of(SCALARS, LONG)
        ordered = st.one_of(NUMBERS, texts(), LONG)
        pairs = st.one_of(st.tuples(NUMBERS, NUMBERS), st.tuples(texts(), texts()), st.tuples(LONG, LONG))
        return st.one_of(
            st.builds(Leaf, st.just("f"), st.sampled_from(["eq", "ne"]), scalars),
            st.builds(Leaf, st.just("f"), st.sampled_from(["gt", "gte", "lt", "lte"]), ordered),
            pairs.map(lambda pair: Leaf("f", "between", pair[0], {"value2": pair[1]})),
            st.lists(scalars, max_size=40).map(lambda values: Leaf("f", "in", values)),
            st.one_of(texts(), LONG).map(lambda text: Leaf("f", "prefix", text)),
        )


@given(st.lists(st.one_of(NUMBERS, st.sampled_from([0.0, -0.0, math.inf, -math.inf])), min_size=2))
def test_terms_of_numbers_sort_as_numbers_do(numbers):
    for low, high in pairwise(sorted(numbers)):
        one, other = encode_value(low), encode_value(high)
        assert one <= other
        if is_exact(one) and is_exact(other):
            assert (one == other) == (low == high)


@given(st.lists(st.text(), min_size=2))
def test_terms_of_strings_sort_by_code_points(strings):
    for low, high in pairwise(sorted(strings)):
        assert encode_value(low) <= encode_value(high)


@given(NUMBERS, NUMBERS)
def test_numbers_compare_exactly(left, right):
    for op, expected in (
        ("eq", left == right), ("ne", left != right), ("gt", left > right),
        ("gte", left >= right), ("lt", left < right), ("lte", left <= right),
    ):  # fmt: skip
        assert (compile_leaf(op, right).test(left) is not None) == expected


@pytest.mark.parametrize(
    ("op", "value", "matching", "others"),
    [
        ("eq", 1, [1, 1.0], [True, "1", None, 2, (1.0,)]),
        ("eq", True, [True], [1, 1.0, "true", False]),
        ("eq", None, [None], ["", 0, False]),
        ("eq", "", [""], [None, 0]),
        ("eq", 2**53 + 1, [2**53 + 1], [2**53, float(2**53)]),
        ("eq", 0, [0, -0.0, 0.0], [False]),
        ("ne", 1, ["1", True, None, 2, (1.0,)], [1, 1.0]),
        ("gt", 1, [2, 1.5, math.inf], [1, True, "2", None, math.nan]),
        ("gt", "B", ["a", "Ba", "ж"], ["B", "A", 5]),
        ("lte", 1, [1, True - 1, -math.inf], [False, "0", 2]),
        ("in", [1, "a", None], [1.0, "a", None], [True, "1", "A"]),
        ("in", [], [], [None, 1]),
        ("prefix", "Ab", ["Ab", "Abc"], ["ab", "A", "xAb", 5]),
        ("prefix", "", ["", "a"], [None, 1]),
    ],
)
def test_what_the_operators_mean(op, value, matching, others):
    predicate = compile_leaf(op, value)
    assert all(predicate.test(found) == 1.0 for found in matching)
    assert all(predicate.test(other) is None for other in others)


def test_between_holds_its_ends():
    predicate = compile_leaf("between", 1, value2=3)
    assert [predicate.test(value) for value in (1, 3.0, 0.99, 3.01)] == [1.0, 1.0, None, None]


def test_ne_looks_at_all_values():
    predicate = compile_leaf("ne", "a")
    assert predicate.test_all(["b", "c"]) == 1.0
    assert predicate.test_all(["a", "b"]) is None
    assert predicate.test_all([]) is None


@pytest.mark.parametrize(
    "text",
    ["2026-03-01T12:00:00Z", "2026-03-01T12:00:00", "2026-03-01T13:00:00+01:00", "2026-03-01 12:00:00.000Z"],
)
def test_times_are_given_as_text_or_milliseconds(text):
    moment = 1_772_366_400_000
    assert compile_leaf("eq", text, "timestamp").test(moment) == 1.0
    assert compile_leaf("lte", moment, "timestamp").test(moment) == 1.0
    assert compile_leaf("in", [text], "timestamp").test(moment) == 1.0
    assert compile_leaf("between", text, "timestamp", value2=text).test(moment) == 1.0


def test_text_that_looks_like_a_time_is_text_elsewhere():
    assert compile_leaf("eq", "2026-03-01").test("2026-03-01") == 1.0


def test_where_a_text_matches():
    assert compile_leaf("prefix", "ab").matches("abc") == [(0, 2)]
    assert compile_leaf("eq", "abc").matches("abc") == [(0, 3)]
    assert compile_leaf("eq", "abc").matches("abcd") == []
    assert compile_leaf("ne", "abc").matches("x") == []
    assert compile_leaf("gt", "a").matches("b") == [(0, 1)]
    assert compile_leaf("in", ["a"]).matches("a") == [(0, 1)]


def test_the_error_names_the_field():
    with pytest.raises(InvalidInput, match=r"^f: gt takes"):
        compile_leaf("gt", None)
