"""The operator of the index type ``phonetic``, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyroaring import BitMap
from svc_query.api import Leaf, Predicate, QueryOperator, TermReader, Value

from svc.errors import InvalidInput
from svc_index_phonetic.coding import DEFAULT_ALGORITHM, MAXIMUM_WORD, WORD, codes_of, fold, words_of
from svc_index_phonetic.index import PRIMARY, SECONDARY, term_of

__all__ = ["PhoneticOperator", "SoundsLike"]

MAXIMUM_WORDS = 32
"""Words that ``phonetic`` takes."""
ONE_SECONDARY = 0.8
"""Score of a word whose primary code is the secondary one of the other."""
BOTH_SECONDARY = 0.6
"""Score of words whose secondary codes are equal."""


class PhoneticOperator(QueryOperator):
    """A text has words that sound like those of the query."""

    name: ClassVar[str] = "phonetic"
    index_types: ClassVar[tuple[tuple[str, ...], ...]] = (("phonetic",),)

    def compile(self, leaf: Leaf) -> Predicate:
        """Takes a string with 1 to 32 words."""
        words = list(dict.fromkeys(words_of(leaf.value))) if isinstance(leaf.value, str) else []
        if not 0 < len(words) <= MAXIMUM_WORDS:
            raise InvalidInput(
                f"{leaf.field}: phonetic takes a string of 1 to {MAXIMUM_WORDS} words.", field="value"
            )
        algorithm = leaf.index_options.get("phonetic", {}).get("algorithm", DEFAULT_ALGORITHM)
        return SoundsLike(words, algorithm)


class SoundsLike(Predicate):
    """For each word of the query a text has one that sounds like it; the score is the mean of the best."""

    def __init__(self, words: list[str], algorithm: str) -> None:
        """Takes folded words, at least one, and the algorithm of the index."""
        self._algorithm = algorithm
        self._codes = list(dict.fromkeys(codes_of(word, algorithm) for word in words))
        self.scored = algorithm == "double_metaphone"
        # Several words may be found in several values, of which none has them all.
        self.certain = not self.scored and len(self._codes) == 1

    def test(self, value: Value) -> float | None:
        """Compares the words of one value."""
        if not isinstance(value, str):
            return None
        others = {codes_of(word, self._algorithm) for word in words_of(value)}
        total = 0.0
        for codes in self._codes:
            best = max((_score(codes, other) for other in others), default=0.0)
            if not best:
                return None
            total += best
        return total / len(self._codes)

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """Counts the documents of the rarest word."""
        reader = _phonetic(indexes)
        return min(sum(reader.count(term) for term in _terms(codes)) for codes in self._codes)

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """Returns the documents that have a code of each word."""
        reader = _phonetic(indexes)
        found = [reader.postings_of_any(_terms(codes)) for codes in self._codes]
        return BitMap.intersection(*found) if len(found) > 1 else found[0]

    def matches(self, text: str) -> list[tuple[int, int]]:
        """Returns the words that sound like one of the query."""
        return [
            match.span()
            for match in WORD.finditer(text)
            if any(
                _score(codes, codes_of(fold(match[0])[:MAXIMUM_WORD], self._algorithm))
                for codes in self._codes
            )
        ]


def _score(codes: tuple[str, str], others: tuple[str, str]) -> float:
    primary, secondary = codes
    other_primary, other_secondary = others
    if primary == other_primary:
        return 1.0
    if primary == other_secondary or (secondary and secondary == other_primary):
        return ONE_SECONDARY
    return BOTH_SECONDARY if secondary and secondary == other_secondary else 0.0


def _terms(codes: tuple[str, str]) -> list[bytes]:
    return [term_of(rank, code) for code in codes if code for rank in (PRIMARY, SECONDARY)]


def _phonetic(indexes: Mapping[str, Any]) -> TermReader:
    reader: TermReader = indexes["phonetic"]
    return reader
