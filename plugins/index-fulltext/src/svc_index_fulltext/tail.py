"""Documents that no flush has taken in, searched in memory; also a single one, for a test.

Scores are those of the library (BM25 with k1 = 1.2 and b = 0.75). How rare a word is, the index beside tells.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyroaring import BitMap
from svc_query.api import IndexDocument, LibraryReader, LibraryTail, Value

from svc.plugin import Path
from svc_index_fulltext.analysis import VALUE_GAP, Analysis, analysis_of
from svc_index_fulltext.asking import AllOf, AnyOf, Beginning, Node, Phrase, Term, documents_of, resolve
from svc_index_fulltext.scoring import score_of
from svc_index_fulltext.searching import SearchReader
from svc_index_fulltext.syntax import Item

__all__ = ["FulltextTail", "TailReader", "WordTable"]

_GAP = 0
_K1 = 1.2
_B = 0.75
_WORD_BYTES = 12
_PATH_BYTES = 200


class WordTable:
    """The words of some documents, in order, and which documents have a word.

    Documents have numbers of their own here, from 0.
    """

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.words = 0
        self._vocabulary: dict[str, int] = {}
        self._having: list[array[int]] = [array("I")]
        self._texts: list[array[int]] = []

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, values: Sequence[Value]) -> None:
        """Adds a document; values that are no strings have no words."""
        number = len(self._texts)
        text = array("I")
        for value in values:
            if isinstance(value, str):
                if text:
                    text.extend([_GAP] * VALUE_GAP)
                self._add_words(text, value)
        self._texts.append(text)
        for word in set(text):
            self._having[word].append(number)
        self.words += len(text) - text.count(_GAP)

    def _add_words(self, text: array[int], value: str) -> None:
        start = len(text)
        vocabulary = self._vocabulary
        for word in self.analysis.words(value):
            place = start + word.position
            if place > len(text):
                text.extend([_GAP] * (place - len(text)))
            number = vocabulary.get(word.text)
            if number is None:
                number = vocabulary[word.text] = len(vocabulary) + 1
                self._having.append(array("I"))
            text.append(number)

    def having(self, word: str) -> BitMap:
        """Returns the documents that have a word."""
        return BitMap(self._having[self._vocabulary.get(word, _GAP)] if word in self._vocabulary else ())

    def beginning(self, prefix: str) -> BitMap:
        """Returns the documents that have a word that begins so."""
        found = BitMap()
        for word, number in list(self._vocabulary.items()):
            if word.startswith(prefix):
                found.update(self._having[number])
        return found

    def having_phrase(self, parts: tuple[tuple[int, str], ...], among: BitMap) -> BitMap:
        """Returns those of some documents that have words at fixed distances, in one value."""
        return BitMap(number for number in among if self.frequency(number, parts))

    def count(self, word: str) -> int:
        """Returns how many documents have a word."""
        number = self._vocabulary.get(word)
        return 0 if number is None else len(self._having[number])

    def length(self, number: int) -> int:
        """Returns how many words a document has."""
        text = self._texts[number]
        return len(text) - text.count(_GAP)

    def frequency(self, number: int, parts: tuple[tuple[int, str], ...]) -> int:
        """Returns how often a document has words at fixed distances; one part is a word."""
        text = self._texts[number]
        wanted = [(distance, self._vocabulary.get(word, _GAP)) for distance, word in parts]
        if any(word == _GAP for _, word in wanted):
            return 0
        first = wanted[0][1]
        if len(wanted) == 1:
            return text.count(first)
        size = len(text)
        return sum(
            all(place + distance < size and text[place + distance] == word for distance, word in wanted)
            for place in range(size)
            if text[place] == first
        )


class FulltextTail(LibraryTail):
    """Some thousands of documents in memory.

    Args:
        options: as ``normalize`` of the index type returns them.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        self._table = WordTable(analysis_of(options))
        self._numbers: list[int] = []
        self._paths: list[Path] = []
        self._places: dict[int, int] = {}

    def add(self, documents: Iterable[IndexDocument]) -> None:
        """Adds documents; one that is there already stays as it is, since a number means one document."""
        for document in documents:
            if document.id not in self._places:
                self._places[document.id] = len(self._numbers)
                self._numbers.append(document.id)
                self._paths.append(document.path)
                self._table.add(document.values)

    def reader(self, beside: LibraryReader | None = None) -> LibraryReader:
        """Returns a reader of what was added until now, and of what will be."""
        return TailReader(
            self._options, self._table, self._numbers, self._paths, self._places, _statistics_of(beside)
        )


def _statistics_of(beside: LibraryReader | None) -> SearchReader | None:
    return beside if isinstance(beside, SearchReader) else None


class TailReader(SearchReader):
    """Searches a tail."""

    blocks = False

    def __init__(
        self,
        options: Mapping[str, Any],
        table: WordTable,
        numbers: list[int],
        paths: list[Path],
        places: dict[int, int],
        beside: SearchReader | None,
    ) -> None:
        self._analysis = analysis_of(options)
        self._table = table
        self._numbers = numbers
        self._paths = paths
        self._places = places
        self._beside = beside

    @property
    def size(self) -> int:
        """About what it takes in memory, in bytes."""
        return self._table.words * _WORD_BYTES + len(self._numbers) * _PATH_BYTES

    def resolve(self, item: Item) -> Node:
        """Returns what a search asks of this index."""
        return resolve(item, self._analysis)

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return len(self._numbers)

    def count_word(self, word: str) -> int:
        """Returns how many documents have a word."""
        return self._table.count(word)

    def estimate(self, node: Node) -> int:
        """Returns how many documents answer a search; exact."""
        return len(documents_of(node, self._table))

    def matching(self, node: Node) -> BitMap:
        """Returns the numbers of the documents that answer a search."""
        return BitMap(self._numbers[place] for place in documents_of(node, self._table))

    def best(self, node: Node, limit: int, below: Sequence[Path] | None) -> list[tuple[int, float]]:
        """Returns (number, score) of the best documents, best first."""
        found: Iterable[int] = documents_of(node, self._table)
        if below is not None:
            wanted = frozenset(below)
            lengths = sorted({len(path) for path in wanted})
            found = (place for place in found if self._is_below(place, wanted, lengths))
        return self._ranked(node, found, limit)

    def scores(self, node: Node, documents: BitMap) -> dict[int, float]:
        """Returns the scores of some documents; those that don't answer are left out."""
        places = self._places
        asked = BitMap(places[number] for number in documents if number in places)
        found = asked & documents_of(node, self._table)
        return dict(self._ranked(node, found, len(found)))

    def _is_below(self, place: int, wanted: frozenset[Path], lengths: Sequence[int]) -> bool:
        path = self._paths[place]
        return any(path[:length] in wanted for length in lengths if length <= len(path))

    def _ranked(self, node: Node, places: Iterable[int], limit: int) -> list[tuple[int, float]]:
        scorer = _Scorer(self._table, self._beside)
        scored = ((score_of(scorer.score(node, place) or 0.0), -self._numbers[place]) for place in places)
        return [(-negative, score) for score, negative in heapq.nlargest(limit, scored)]


class _Scorer:
    """Scores documents of a table as the library does."""

    def __init__(self, table: WordTable, beside: SearchReader | None) -> None:
        self._table = table
        self._beside = beside
        self._average = max(1.0, table.words / max(1, len(table)))
        self._weights: dict[str, float] = {}
        self._beginnings: dict[str, BitMap] = {}

    def score(self, node: Node, place: int) -> float | None:
        """Returns the score of a document; None when it does not answer that part."""
        match node:
            case Term():
                return self._occurrences(((0, node.text),), place)
            case Phrase():
                return self._occurrences(node.parts, place)
            case Beginning():
                return 1.0 if place in self._beginning(node.text) else None
            case AllOf():
                parts = [self.score(item, place) for item in node.wanted]
                excluded = any(self.score(item, place) is not None for item in node.unwanted)
                return None if excluded or None in parts else sum(part for part in parts if part is not None)
            case AnyOf():
                found = [part for item in node.items if (part := self.score(item, place)) is not None]
                return sum(found) if found else None
            case _:
                return None

    def _occurrences(self, parts: tuple[tuple[int, str], ...], place: int) -> float | None:
        frequency = self._table.frequency(place, parts)
        if not frequency:
            return None
        weight = sum(self._weight(word) for _, word in parts)
        norm = _K1 * (1 - _B + _B * self._table.length(place) / self._average)
        return weight * frequency / (frequency + norm)

    def _beginning(self, prefix: str) -> BitMap:
        found = self._beginnings.get(prefix)
        if found is None:
            found = self._beginnings[prefix] = self._table.beginning(prefix)
        return found

    def _weight(self, word: str) -> float:
        weight = self._weights.get(word)
        if weight is None:
            documents = len(self._table)
            having = self._table.count(word)
            if self._beside is not None:
                documents += self._beside.documents
                having += self._beside.count_word(word)
            rarity = math.log(1 + (documents - having + 0.5) / (having + 0.5))
            weight = self._weights[word] = rarity * (1 + _K1)
        return weight
