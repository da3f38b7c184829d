"""What the operators of ``trigram`` mean, and which terms answer them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import ceil
from typing import Any
from weakref import WeakKeyDictionary

from pyroaring import BitMap
from svc_query.api import Predicate, TermReader, Value

from svc.plugin import pause
from svc_index_trigram.counting import at_least
from svc_index_trigram.folding import (
    MAXIMUM_WORD,
    WORD,
    WORDS,
    contain_terms,
    fold,
    fold_with_places,
    similarity_terms,
    word_term,
    words_of,
)

__all__ = ["Contains", "EditDistance", "FuzzyWords", "JaroWinklerSimilarity", "SimilarTo"]

COUNTED_TRIPLES = 2
"""Triples of a needle that an estimate looks at."""
MAXIMUM_RANGE = 250_000
"""Postings that a needle of one or two bytes may have; beyond, all documents are rather looked at."""
COUNTED = 64
"""Triples of a text for which documents are counted exactly; of a longer text candidates are a few more."""
_WORDS_AT_ONCE = 2_000
"""Words of an index that are compared before others get their turn."""
_MOST_KEPT = 4
_near_documents: WeakKeyDictionary[TermReader, dict[tuple[Any, ...], list[BitMap]]] = WeakKeyDictionary()
"""For readers of indexes, the documents near to words: a page of results asks for the same several times."""
CUTOFF_ERROR = 1e-5
"""How far below a threshold rapidfuzz is asked: it loses what exceeds its cutoff by less than 1e-7."""


class Contains(Predicate):
    """A text contains another, without regard to case; certain for up to three bytes."""

    def __init__(self, needle: str) -> None:
        """Takes what is looked for; an empty one is in every text."""
        self._needle = fold(needle)
        data = self._needle.encode("utf-8", "surrogatepass")
        self._terms = contain_terms(self._needle)
        # Every byte of a text begins a triple, so the triples that begin with a short needle are a range.
        self._range = (data, data + b"\xff\xff\xff") if 0 < len(data) < 3 else None
        self.certain = 0 < len(data) <= 3

    def test(self, value: Value) -> float | None:
        """Looks for the needle in one value."""
        return 1.0 if isinstance(value, str) and self._needle in fold(value) else None

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """Counts the documents of the rarest triple; None for a short needle that is nearly everywhere."""
        reader = _trigrams(indexes)
        if self._terms:
            return min(reader.count(term) for term in self._terms[:COUNTED_TRIPLES])
        if self._range is None:
            return None
        postings = reader.count_range(*self._range)
        return postings if postings <= MAXIMUM_RANGE else None

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """Returns the documents that have all triples; those of a range of triples for a short needle."""
        reader = _trigrams(indexes)
        if self._terms:
            return reader.postings_of_all(self._terms)
        if self._range is None or reader.count_range(*self._range) > MAXIMUM_RANGE:
            return None
        return reader.postings_range(*self._range)

    def matches(self, text: str) -> list[tuple[int, int]]:
        """Returns each place where the needle stands."""
        found = fold_with_places(text) if self._needle else None
        if found is None:
            return []
        folded, places = found
        ranges: list[tuple[int, int]] = []
        at = folded.find(self._needle)
        while at >= 0:
            behind = at + len(self._needle)
            start, end = places[at], _end_of(places, behind)
            if not ranges or start >= ranges[-1][1]:
                ranges.append((start, end))
            at = folded.find(self._needle, behind)
        return ranges


class SimilarTo(Predicate):
    """A text shares triples with another: as many of all that either has as the threshold says, at least."""

    scored = True

    def __init__(self, text: str, threshold: float) -> None:
        """Takes what texts are compared with, and the least similarity, 0 to 1."""
        self._terms = similarity_terms(fold(text))
        self._threshold = threshold
        # What both have is no more than what one has: so many of the text's own triples must be shared.
        self._shared = max(1, ceil(threshold * len(self._terms) - 1e-9))

    def test(self, value: Value) -> float | None:
        """Compares one value: triples of both over triples of either."""
        if not isinstance(value, str):
            return None
        terms = similarity_terms(fold(value))
        shared = len(terms & self._terms)
        if not shared:
            return None
        score = shared / (len(terms) + len(self._terms) - shared)
        return score if score >= self._threshold else None

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """Counts postings: each document has so many of them, at least."""
        reader = _trigrams(indexes)
        postings = sum(reader.count(term) for term in self._terms)
        return postings // self._shared if len(self._terms) <= COUNTED else postings

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """Returns the documents that share enough triples."""
        reader = _trigrams(indexes)
        if len(self._terms) <= COUNTED:
            return at_least(self._shared, [reader.postings(term) for term in self._terms])
        # A document that shares enough shares one of these: there are not enough others.
        rarest = sorted(self._terms, key=reader.count)[: len(self._terms) - self._shared + 1]
        return reader.postings_of_any(rarest)

    def matches(self, text: str) -> list[tuple[int, int]]:
        """The whole text matches, or nothing."""
        return [(0, len(text))] if text and self.test(text) else []


class FuzzyWords(Predicate):
    """Each word of the query is near to a word of a text; the score is the mean of the nearest."""

    scored = True

    def __init__(self, text: str, bound: float | None) -> None:
        """Takes the query, which has a word, and what says how near other words must be."""
        self._bound = bound
        self._words = list(dict.fromkeys(words_of(fold(text))))

    @abstractmethod
    def similarity(self, word: str, other: str) -> float:
        """Returns how near a word is to one of the query: above 0 and at most 1; 0 when it is not."""

    @abstractmethod
    def near(self, word: str, others: Sequence[str]) -> list[str]:
        """Returns those of many words that are near to one of the query."""

    def test(self, value: Value) -> float | None:
        """Compares the words of one value."""
        if not isinstance(value, str):
            return None
        others = set(words_of(fold(value)))
        total = 0.0
        for word in self._words:
            best = max((self.similarity(word, other) for other in others), default=0.0)
            if best <= 0:
                return None
            total += best
        return total / len(self._words)

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """Counts the documents that have words near to that word of the query which is rarest.

        Finds them, in fact: all words of the index are compared, and what was found is kept as long as the
        index stays as it is.
        """
        return min(len(documents) for documents in self._documents(_trigrams(indexes)))

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """Returns the documents that have a near word for each word of the query."""
        found = self._documents(_trigrams(indexes))
        return BitMap.intersection(*found) if len(found) > 1 else found[0].copy()

    def _documents(self, reader: TermReader) -> list[BitMap]:
        kept = _near_documents.setdefault(reader, {})
        asked = type(self), self._bound, *self._words
        found = kept.get(asked)
        if found is None:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            found = kept[asked] = [reader.postings_of_any(terms) for terms in self._near_terms(reader)]
        return found

    def _near_terms(self, reader: TermReader) -> list[set[bytes]]:
        """Returns for each word of the query the terms of the index that are near to it."""
        near: list[set[bytes]] = [set() for _ in self._words]
        terms = reader.terms(*WORDS)
        while stored := [term[1:] for term in islice(terms, _WORDS_AT_ONCE)]:
            others = b"\n".join(stored).decode("utf-8", "surrogatepass").split("\n")
            for word, found in zip(self._words, near, strict=True):
                found.update(map(word_term, self.near(word, others)))
            pause()
        return near

    def matches(self, text: str) -> list[tuple[int, int]]:
        """Returns the words that are near to one of the query."""
        return [
            match.span()
            for match in WORD.finditer(text)
            if any(self.similarity(word, fold(match[0])[:MAXIMUM_WORD]) > 0 for word in self._words)
        ]


class EditDistance(FuzzyWords):
    """Words that few edits tell apart: a letter more, less or changed, or two neighbours swapped."""

    def __init__(self, text: str, fuzziness: int | None) -> None:
        """Takes the query and the most edits; None: by the length of each word."""
        # Megabytes, with all its algorithms, for queries of this kind alone.
        from rapidfuzz.distance import OSA

        super().__init__(text, fuzziness)
        self._fuzziness = fuzziness
        self._distance = OSA.distance

    def similarity(self, word: str, other: str) -> float:
        """Returns one less the edits over the length of the longer word."""
        most = self._edits(word)
        edits = self._distance(word, other, score_cutoff=most)
        return 0.0 if edits > most else 1 - edits / max(len(word), len(other), 1)

    def near(self, word: str, others: Sequence[str]) -> list[str]:
        """Compares with all, in C."""
        return _extract(word, others, self._distance, self._edits(word))

    def _edits(self, word: str) -> int:
        if self._fuzziness is not None:
            return self._fuzziness
        return 0 if len(word) <= 2 else 1 if len(word) <= 5 else 2


class JaroWinklerSimilarity(FuzzyWords):
    """Words that share letters in about the same places, and a beginning."""

    def __init__(self, text: str, threshold: float) -> None:
        """Takes the query and the least similarity, 0 to 1."""
        from rapidfuzz.distance import JaroWinkler

        super().__init__(text, threshold)
        self._threshold = threshold
        self._likeness = JaroWinkler.similarity

    def similarity(self, word: str, other: str) -> float:
        """Returns the similarity, where it is enough."""
        found: float = self._likeness(word, other)
        return found if found >= self._threshold else 0.0

    def near(self, word: str, others: Sequence[str]) -> list[str]:
        """Compares with all, in C; a hair more generously than ``similarity``."""
        return _extract(word, others, self._likeness, max(self._threshold - CUTOFF_ERROR, 0))


def _extract(word: str, others: Sequence[str], scorer: Callable[..., Any], cutoff: float) -> list[str]:
    from rapidfuzz import process

    found = process.extract(word, others, scorer=scorer, score_cutoff=cutoff, limit=None)
    return [choice for choice, _, _ in found]


def _end_of(places: Sequence[int], behind: int) -> int:
    """Returns where in the text the character ends of which the one before ``behind`` came."""
    last = places[behind - 1]
    while behind < len(places) and places[behind] == last:
        behind += 1
    return places[behind] if behind < len(places) else places[-1]


def _trigrams(indexes: Mapping[str, Any]) -> TermReader:
    reader: TermReader = indexes["trigram"]
    return reader
