"""The contract of query operators, as tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from svc.errors import InvalidInput
from svc_query.api import QUERY_OPERATORS, Leaf, Predicate, QueryOperator, RankedPredicate, Value
from svc_testing import ExtensionContract

__all__ = ["ODD_VALUES", "QueryOperatorContract"]

ODD_VALUES: tuple[Value, ...] = (
    None,
    True,
    False,
    0,
    -1,
    2**53 + 1,
    -(2**80),
    0.0,
    -0.5,
    1e308,
    float("inf"),
    "",
    " ",
    "a",
    "Å" * 50,
    "\u0000\ud7ff\U0001f600",
    "x" * 5_000,
    (),
    (0.0, 1.5),
)
"""Values that a field may have, whatever its operator expects."""

_ODD_ARGUMENTS: tuple[Any, ...] = (*ODD_VALUES[:-2], [], [[]], {}, {"a": 1}, [None, 1, "a"])


class QueryOperatorContract(ExtensionContract):
    """Tests of a query operator. A subclass sets ``plugin_id`` and ``examples``, and gives ``extension``.

    Attributes:
        examples: leaves (``value`` and options) with values that they match, and values that they do not.
        refused: leaves that the operator must refuse.
        settings: as in ``ExtensionContract``.
    """

    family = QUERY_OPERATORS
    examples: ClassVar[Sequence[tuple[Mapping[str, Any], Sequence[Value], Sequence[Value]]]]
    refused: ClassVar[Sequence[Mapping[str, Any]]] = ()

    def compiled(self, extension: QueryOperator, leaf: Mapping[str, Any]) -> Predicate:
        """The leaf, ready to be asked."""
        options = {name: value for name, value in leaf.items() if name not in ("value", "value_type")}
        value_type = leaf.get("value_type", "auto")
        return extension.compile(Leaf("field", extension.name, leaf.get("value"), options, value_type))

    def test_it_says_what_it_needs(self, extension: QueryOperator) -> None:
        """Its name is one that a filter can have, and its sets of index types hold names."""
        assert extension.name
        assert extension.name == extension.name.strip().lower()
        assert extension.index_types, "An operator names the index types that answer it."
        assert all(isinstance(name, str) for types in extension.index_types for name in types)
        assert not {"field", "op", "value"} & extension.options

    def test_values_match_as_the_examples_say(self, extension: QueryOperator) -> None:
        """Scores are above 0 and at most 1; what does not match has none."""
        assert self.examples, "A contract without examples tests nothing."
        for leaf, matching, others in self.examples:
            predicate = self.compiled(extension, leaf)
            for value in matching:
                score = predicate.test_all([value])
                assert score is not None, (leaf, value)
                assert 0 < score <= 1, (leaf, value)
                if not predicate.scored:
                    assert score == 1.0, (leaf, value)
            for value in others:
                assert predicate.test_all([value]) is None, (leaf, value)

    def test_any_value_may_come(self, extension: QueryOperator) -> None:
        """No value of any kind makes it fail; it gives a score or None."""
        for leaf, _, _ in self.examples:
            predicate = self.compiled(extension, leaf)
            for value in ODD_VALUES:
                score = predicate.test(value)
                assert score is None or 0 < score <= 1, (leaf, value)
            score = predicate.test_all(ODD_VALUES)
            assert score is None or 0 < score <= 1, leaf

    def test_any_argument_is_taken_or_refused(self, extension: QueryOperator) -> None:
        """Whatever a caller gives: a predicate, or InvalidInput with a sentence; never another error."""
        for leaf, _, _ in self.examples:
            for name in ("value", *sorted(extension.options)):
                for odd in _ODD_ARGUMENTS:
                    try:
                        predicate = self.compiled(extension, {**leaf, name: odd})
                    except InvalidInput as error:
                        assert error.message.endswith(".")  # noqa: PT017 - every refusal is looked at
                        continue
                    predicate.test("text")

    def test_bad_leaves_are_refused(self, extension: QueryOperator) -> None:
        """Each with a sentence and the member that is wrong."""
        for leaf in self.refused:
            with pytest.raises(InvalidInput) as refusal:
                self.compiled(extension, leaf)
            assert refusal.value.details.get("field"), leaf

    def test_the_best_value_counts(self, extension: QueryOperator) -> None:
        """A document has the score of its best value, unless the operator looks at all of them."""
        for leaf, matching, others in self.examples:
            predicate = self.compiled(extension, leaf)
            if type(predicate).test_all is not Predicate.test_all:
                continue
            scores = [score for value in matching if (score := predicate.test(value)) is not None]
            assert predicate.test_all([*others, *matching]) == max(scores, default=None), leaf
            assert predicate.test_all([]) is None

    def test_ranges_lie_in_the_text_and_in_order(self, extension: QueryOperator) -> None:
        """Where it says that a text matches, there is a text."""
        for leaf, matching, others in self.examples:
            predicate = self.compiled(extension, leaf)
            for value in (*matching, *others, *ODD_VALUES):
                if not isinstance(value, str):
                    continue
                end = 0
                for start, stop in predicate.matches(value):
                    assert end <= start < stop <= len(value), (leaf, value)
                    end = stop

    def test_it_keeps_no_state(self, extension: QueryOperator) -> None:
        """One object serves all: to compile a leaf changes neither it nor another predicate."""
        before = _state(extension)
        for leaf, matching, _ in self.examples:
            first = self.compiled(extension, leaf)
            scores = [first.test_all([value]) for value in matching]
            self.compiled(extension, leaf)
            assert [first.test_all([value]) for value in matching] == scores
        assert _state(extension) == before

    def test_what_is_certain_is_not_scored(self, extension: QueryOperator) -> None:
        """Candidates that need no test have the score 1, unless the index itself ranks them."""
        for leaf, _, _ in self.examples:
            predicate = self.compiled(extension, leaf)
            if not isinstance(predicate, RankedPredicate):
                assert not (predicate.certain and predicate.scored), leaf


def _state(extension: QueryOperator) -> list[tuple[str, str]]:
    return sorted((name, repr(value)) for name, value in vars(extension).items())
