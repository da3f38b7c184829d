"""The operator ``search``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from svc_query.api import Leaf, Predicate, QueryOperator, RankedPredicate, Value

from svc.errors import InvalidInput
from svc.plugin import Path
from svc_index_fulltext.analysis import Analysis, Word, analysis_of
from svc_index_fulltext.asking import Beginning, Node, Phrase, Term, documents_of, positive_leaves, resolve
from svc_index_fulltext.searching import SearchReader
from svc_index_fulltext.syntax import Item, parse
from svc_index_fulltext.tail import WordTable

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["SearchOperator", "SearchPredicate"]

INDEX_TYPE = "fulltext"


class SearchOperator(QueryOperator):
    """Words, phrases, what must not be there, alternatives and beginnings of words."""

    name = "search"
    index_types = ((INDEX_TYPE,),)

    def compile(self, leaf: Leaf) -> Predicate:
        """Returns the search.

        Raises:
            InvalidInput: it is no text, or can't be read.
        """
        if not isinstance(leaf.value, str):
            raise InvalidInput(f"A search of {leaf.field!r} is a text: words, or phrases.", field="value")
        try:
            item = parse(leaf.value)
        except InvalidInput as error:
            raise InvalidInput(f"The search of {leaf.field!r}: {error.message}", **error.details) from error
        return SearchPredicate(item, analysis_of(leaf.index_options.get(INDEX_TYPE, {})))


class SearchPredicate(RankedPredicate):
    """A search.

    Words may stand in different values of a document; a phrase stands in one.
    """

    certain = True

    def __init__(self, item: Item, analysis: Analysis) -> None:
        self._item = item
        self._analysis = analysis
        self._node = resolve(item, analysis)

    def test(self, value: Value) -> float | None:
        """Returns 1 for a text that matches."""
        return self.test_all((value,))

    def test_all(self, values: Sequence[Value]) -> float | None:
        """Returns 1 for a document that matches."""
        table = WordTable(self._analysis)
        table.add(values)
        return 1.0 if documents_of(self._node, table) else None

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """Returns how many documents match, at most."""
        reader = _reader(indexes)
        return None if reader is None else reader.estimate(self._resolved(reader))

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """Returns the documents that match."""
        reader = _reader(indexes)
        return None if reader is None else reader.matching(self._resolved(reader))

    def best(
        self, indexes: Mapping[str, Any], limit: int, *, below: Sequence[Path] | None = None
    ) -> list[tuple[int, float]]:
        """Returns the documents with the best scores."""
        reader = _reader(indexes)
        return [] if reader is None else reader.best(self._resolved(reader), limit, below)

    def scores(self, indexes: Mapping[str, Any], documents: BitMap) -> dict[int, float]:
        """Returns the scores of those of some documents that match."""
        reader = _reader(indexes)
        return {} if reader is None else reader.scores(self._resolved(reader), documents)

    def _resolved(self, reader: SearchReader) -> Node:
        """Returns the search as an index has its words: as this one has them, where they are found alike."""
        return self._node if reader.analysis is self._analysis else reader.resolve(self._item)

    def matches(self, text: str) -> list[tuple[int, int]]:
        """Returns where the words of the search are, in whatever form, and its phrases."""
        words = self._analysis.words(text)
        terms: set[str] = set()
        beginnings: list[str] = []
        ranges: list[tuple[int, int]] = []
        for leaf in positive_leaves(self._node):
            match leaf:
                case Term():
                    terms.add(leaf.text)
                case Beginning():
                    beginnings.append(leaf.text)
                case Phrase():
                    ranges += _phrases(words, leaf.parts)
        starts = tuple(beginnings)
        ranges += [
            (word.start, word.end) for word in words if word.text in terms or word.text.startswith(starts)
        ]
        return _merged(ranges)


def _reader(indexes: Mapping[str, Any]) -> SearchReader | None:
    reader = indexes.get(INDEX_TYPE)
    return reader if isinstance(reader, SearchReader) else None


def _phrases(words: Sequence[Word], parts: tuple[tuple[int, str], ...]) -> list[tuple[int, int]]:
    places = {word.position: word for word in words}
    first = parts[0][1]
    found: list[tuple[int, int]] = []
    for word in words:
        if word.text == first:
            there = [places.get(word.position + distance) for distance, _ in parts]
            wanted = [text for _, text in parts]
            if [None if one is None else one.text for one in there] == wanted and there[-1] is not None:
                found.append((word.start, there[-1].end))
    return found


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns ranges in order; those that overlap become one."""

    def join(done: list[tuple[int, int]], one: tuple[int, int]) -> list[tuple[int, int]]:
        if done and one[0] < done[-1][1]:
            done[-1] = (done[-1][0], max(done[-1][1], one[1]))
        else:
            done.append(one)
        return done

    return reduce(join, sorted(ranges), [])
