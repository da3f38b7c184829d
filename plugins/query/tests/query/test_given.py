"""What operators give is checked where it comes in; a fault has the names of the operator and its package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyroaring import BitMap
from svc_query.planning import given
from svc_query.planning.nodes import LeafNode

from svc.errors import InternalError

CHECKS: list[tuple[Callable[..., Any], list[Any], list[Any]]] = [
    (given.score_of, [1, 0.5], [0, 1.5, "x", None, float("nan")]),
    (given.count_of, [None, 0, 7], [-1, "many", 0.5]),
    (given.documents_of, [None, BitMap([1])], [[1], {1}, 7]),
    (given.best_of, [[], [(1, 0.5)]], [{1: 0.5}, [1], [(1, 2, 3)], [("x", 0.5)], [(1, "x")], [(-1, 0.5)]]),
    (given.scores_of, [{}, {1: 0.5}], [[(1, 0.5)], {"x": 0.5}, {1: 7}, {1 << 40: 0.5}]),
]


@pytest.mark.parametrize(("check", "right", "wrong"), CHECKS)
def test_what_is_right_passes_and_all_else_is_a_fault(
    check: Callable[..., Any], right: list[Any], wrong: list[Any]
) -> None:
    for value in right:
        assert check("odd", object(), value) is value
    for value in wrong:
        with pytest.raises(InternalError, match="The query operator 'odd' gives") as fault:
            check("odd", object(), value)
        assert fault.value.details["extension"] == "builtins"


def test_places_lie_in_the_text_and_are_no_more_than_are_asked_for() -> None:
    assert given.ranges_of("odd", object(), [(0, 1), (1, 3)], "abc", 1) == [(0, 1)]
    for wrong in (7, [3], [(0, 4)], [(2, 1)], [("a", "b")], [(0,)]):
        with pytest.raises(InternalError, match="operator 'odd'"):
            given.ranges_of("odd", object(), wrong, "abc", 10)


def test_a_leaf_checks_what_it_is_told() -> None:
    class Odd(given.Predicate):
        def test(self, value: Any) -> Any:
            return "rubbish"

        def estimate(self, indexes: Any) -> Any:
            return None

        def candidates(self, indexes: Any) -> Any:
            return None

    leaf = LeafNode("field", "odd", [Odd()])
    with pytest.raises(InternalError, match="for a score"):
        leaf.test(["x"])
    with pytest.raises(InternalError, match="for scores"):
        leaf.learn([(1, 0.5)])  # type: ignore[arg-type]
