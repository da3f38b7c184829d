"""The operators of the index type ``trigram``."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from svc_query.api import Leaf, Predicate, QueryOperator

from svc.errors import InvalidInput
from svc_index_trigram.folding import fold, words_of
from svc_index_trigram.predicates import (
    Contains,
    EditDistance,
    JaroWinklerSimilarity,
    SimilarTo,
)

__all__ = ["OPERATORS"]

MAXIMUM_NEEDLE = 10_000
"""Characters of a value that the other operators take."""
MAXIMUM_SIMILAR = 1_000
"""Characters of a value that ``similar`` takes."""
MAXIMUM_WORDS = 32
"""Words that ``fuzzy`` takes."""
MAXIMUM_EDITS = 10
DEFAULT_SIMILARITY = 0.3
DEFAULT_JARO_WINKLER = 0.85


class TrigramOperator(QueryOperator):
    """One that the index type ``trigram`` answers."""

    index_types: ClassVar[tuple[tuple[str, ...], ...]] = (("trigram",),)


class ContainsOperator(TrigramOperator):
    """A text contains another."""

    name: ClassVar[str] = "contains"

    def compile(self, leaf: Leaf) -> Predicate:
        """Takes a string; the empty one is in every text."""
        return Contains(_text(leaf))


class SimilarOperator(TrigramOperator):
    """A text is similar to another as a whole."""

    name: ClassVar[str] = "similar"
    options: ClassVar[frozenset[str]] = frozenset({"threshold"})

    def compile(self, leaf: Leaf) -> Predicate:
        """Takes a string that is not empty, and ``threshold`` from 0 to 1, 0.3 by itself."""
        text = _text(leaf)
        if not text:
            raise InvalidInput(f"{leaf.field}: similar takes a string that is not empty.", field="value")
        if len(text) > MAXIMUM_SIMILAR:
            raise InvalidInput(
                f"{leaf.field}: similar takes at most {MAXIMUM_SIMILAR} characters.", field="value"
            )
        return SimilarTo(text, _threshold(leaf, DEFAULT_SIMILARITY))


class FuzzyOperator(TrigramOperator):
    """A text has the words, or misspelt ones."""

    name: ClassVar[str] = "fuzzy"
    options: ClassVar[frozenset[str]] = frozenset({"algorithm", "fuzziness", "threshold"})

    def compile(self, leaf: Leaf) -> Predicate:
        """Takes a string with words, and ``fuzziness``, ``algorithm`` and ``threshold``."""
        text = _text(leaf)
        words = len(words_of(fold(text)))
        if not 0 < words <= MAXIMUM_WORDS:
            raise InvalidInput(f"{leaf.field}: fuzzy takes 1 to {MAXIMUM_WORDS} words.", field="value")
        fuzziness = _fuzziness(leaf)
        algorithm = leaf.options.get("algorithm", "damerau_levenshtein")
        if algorithm == "damerau_levenshtein":
            if "threshold" in leaf.options:
                raise InvalidInput(
                    f"{leaf.field}: threshold is for the algorithm jaro_winkler.", field="threshold"
                )
            return EditDistance(text, fuzziness)
        if algorithm == "jaro_winkler":
            if fuzziness is not None:
                raise InvalidInput(
                    f"{leaf.field}: jaro_winkler counts no edits; it takes threshold.", field="fuzziness"
                )
            return JaroWinklerSimilarity(text, _threshold(leaf, DEFAULT_JARO_WINKLER))
        raise InvalidInput(
            f"{leaf.field}: the algorithms of fuzzy are damerau_levenshtein and jaro_winkler.",
            field="algorithm",
        )


OPERATORS: tuple[type[QueryOperator], ...] = (ContainsOperator, SimilarOperator, FuzzyOperator)
"""All of them."""


def _text(leaf: Leaf) -> str:
    if not isinstance(leaf.value, str):
        raise InvalidInput(f"{leaf.field}: {leaf.op} takes a string.", field="value")
    if len(leaf.value) > MAXIMUM_NEEDLE:
        raise InvalidInput(
            f"{leaf.field}: {leaf.op} takes at most {MAXIMUM_NEEDLE} characters.", field="value"
        )
    return leaf.value


def _threshold(leaf: Leaf, default: float) -> float:
    threshold: Any = leaf.options.get("threshold", default)
    number = isinstance(threshold, (int, float)) and not isinstance(threshold, bool)
    if not number or math.isnan(threshold) or not 0 <= threshold <= 1:
        raise InvalidInput(f"{leaf.field}: threshold is a number from 0 to 1.", field="threshold")
    return float(threshold)


def _fuzziness(leaf: Leaf) -> int | None:
    fuzziness: Any = leaf.options.get("fuzziness", "auto")
    if isinstance(fuzziness, str) and fuzziness.lower() == "auto":
        return None
    if isinstance(fuzziness, bool) or not isinstance(fuzziness, int) or not 0 <= fuzziness <= MAXIMUM_EDITS:
        raise InvalidInput(
            f'{leaf.field}: fuzziness is "auto" or a number of edits up to {MAXIMUM_EDITS}.',
            field="fuzziness",
        )
    return fuzziness
