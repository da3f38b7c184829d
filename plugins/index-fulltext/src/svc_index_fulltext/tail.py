"""Documents that no flush has taken in, searched in memory; also a single one, for a test.

Scores are those of the library (BM25 with k1 = 1.2 and b = 0.75). How rare a word is, the index beside tells.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

    Documents have numbers of their own here, from 0. One thread at a time adds; others may look meanwhile,
    and see what was there before.

    Attributes:
        lengths: how many words each document has.
        words: the sum of them.
    """

    def __init__(self, analysis: Analysis) -> None:
        self.lengths: list[int] = []
        self.words = 0
        self._analysis = analysis
        self._having: list[array[int]] = [array("I")]
        self._counts: list[array[int]] = [array("I")]
        self._vocabulary = _Vocabulary(self._having, self._counts)
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
        counts = Counter(text)
        length = len(text) - counts.pop(_GAP, 0)
        self._texts.append(text)
        self.lengths.append(length)
        self.words += length
        for word, count in counts.items():
            self._counts[word].append(count)
            self._having[word].append(number)

    def _add_words(self, text: array[int], value: str) -> None:
        together = self._analysis.words_together(value)
        if together is not None:
            text.extend(map(self._vocabulary.__getitem__, together))
            return
        start = len(text)
        for word in self._analysis.words(value):
            place = start + word.position
            if place > len(text):
                text.extend([_GAP] * (place - len(text)))
            text.append(self._vocabulary[word.text])

    def having(self, word: str) -> BitMap:
        """Returns the documents that have a word."""
        return BitMap(self._having[self._vocabulary.get(word, _GAP)])

    def occurrences(self, word: str) -> Iterator[tuple[int, int]]:
        """Yields (document, how often it has the word)."""
        number = self._vocabulary.get(word, _GAP)
        return zip(self._having[number], self._counts[number], strict=False)

    def beginning(self, prefix: str) -> BitMap:
        """Returns the documents that have a word that begins so."""
        found = array("I")
        for word, number in list(self._vocabulary.items()):
            if word.startswith(prefix):
                found.extend(self._having[number])
        return BitMap(found)

    def having_phrase(self, parts: tuple[tuple[int, str], ...], among: BitMap) -> BitMap:
        """Returns those of some documents that have words at fixed distances, in one value."""
        return BitMap([number for number in among if self.count_phrase(number, parts)])

    def count_phrase(self, number: int, parts: tuple[tuple[int, str], ...]) -> int:
        """Returns how often a document has words at fixed distances."""
        text = self._texts[number]
        wanted = [(distance, self._vocabulary.get(word, _GAP)) for distance, word in parts]
        if any(word == _GAP for _, word in wanted):
            return 0
        first = wanted[0][1]
        behind = len(text) - wanted[-1][0]
        count, place = 0, -1
        while True:
            try:
                place = text.index(first, place + 1, behind)
            except ValueError:
                return count
            count += all(text[place + distance] == word for distance, word in wanted)

    def count(self, word: str) -> int:
        """Returns how many documents have a word."""
        return len(self._having[self._vocabulary.get(word, _GAP)])


class _Vocabulary(dict[str, int]):
    """Numbers of words; one that is asked for by ``[]`` gets one."""

    def __init__(self, *columns: list[array[int]]) -> None:
        super().__init__()
        self._columns = columns

    def __missing__(self, word: str) -> int:
        number = len(self._columns[0])
        for column in self._columns:
            column.append(array("I"))
        self[word] = number
        return number


class FulltextTail(LibraryTail):
    """Some thousands of documents in memory."""

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
        self.analysis = analysis_of(options)
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
        return resolve(item, self.analysis)

    @property
    def count(self) -> int:
        """How many documents there are."""
        return len(self._numbers)

    def documents(self) -> BitMap:
        """Returns the numbers of the documents."""
        return BitMap(self._numbers)

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
        found = documents_of(node, self._table)
        if below is not None:
            wanted = frozenset(below)
            lengths = sorted({len(path) for path in wanted})
            found = BitMap([place for place in found if self._is_below(place, wanted, lengths)])
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

    def _ranked(self, node: Node, places: BitMap, limit: int) -> list[tuple[int, float]]:
        scores = _Scorer(self._table, self._beside).scores(node)
        scored = [(score_of(scores[place]), -self._numbers[place]) for place in places if place in scores]
        return [(-negative, score) for score, negative in heapq.nlargest(limit, scored)]


class _Scorer:
    """Scores the documents of a table as the library does."""

    def __init__(self, table: WordTable, beside: SearchReader | None) -> None:
        self._table = table
        self._beside = beside
        average = max(1.0, table.words / max(1, len(table)))
        self._norms = [_K1 * (1 - _B + _B * length / average) for length in table.lengths]

    def scores(self, node: Node) -> dict[int, float]:
        match node:
            case Term():
                return self._of_word(node.text)
            case Phrase():
                return self._of_phrase(node)
            case Beginning():
                return dict.fromkeys(self._table.beginning(node.text), 1.0)
            case AllOf():
                parts = sorted(map(self.scores, node.wanted), key=len)
                for item in node.unwanted:
                    unwanted = documents_of(item, self._table)
                    parts[0] = {place: score for place, score in parts[0].items() if place not in unwanted}
                return {
                    place: score + sum(part[place] for part in parts[1:])
                    for place, score in parts[0].items()
                    if all(place in part for part in parts[1:])
                }
            case AnyOf():
                total: dict[int, float] = {}
                for part in map(self.scores, node.items):
                    for place, score in part.items():
                        total[place] = total.get(place, 0.0) + score
                return total
            case _:
                return {}

    def _of_word(self, word: str) -> dict[int, float]:
        weight, norms = self._weight(word), self._norms
        return {
            place: weight * count / (count + norms[place])
            for place, count in self._table.occurrences(word)
            if place < len(norms)
        }

    def _of_phrase(self, node: Phrase) -> dict[int, float]:
        weight = sum(self._weight(word) for _, word in node.parts)
        scores: dict[int, float] = {}
        for place in documents_of(node, self._table):
            if place < len(self._norms):
                count = self._table.count_phrase(place, node.parts)
                scores[place] = weight * count / (count + self._norms[place])
        return scores

    def _weight(self, word: str) -> float:
        documents = len(self._table)
        having = self._table.count(word)
        if self._beside is not None:
            documents += self._beside.count
            having += self._beside.count_word(word)
        rarity = math.log(1 + (documents - having + 0.5) / (having + 0.5))
        return rarity * (1 + _K1)
