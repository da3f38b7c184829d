"""Searches the files of one state."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

import tantivy
from pyroaring import BitMap
from tantivy import FieldType, Occur, Query

from svc.plugin import Path
from svc_index_fulltext.analysis import analysis_of
from svc_index_fulltext.asking import AllOf, AnyOf, Beginning, Node, Phrase, Term, resolve
from svc_index_fulltext.layout import DIRECTORY_FIELD, ID_FIELD, TEXT_FIELD, directory_key, open_index
from svc_index_fulltext.scoring import score_of
from svc_index_fulltext.searching import SearchReader
from svc_index_fulltext.syntax import Item
from svc_index_fulltext.writing import State, read_documents, state_directory

__all__ = ["FulltextReader"]

_WORDS_COUNTED = 64
_LISTED_AT_ONCE = 16_384
_NAMED_AT_MOST = 2_000
"""Documents that are looked up by their numbers; for more, all that match are listed."""


class FulltextReader(SearchReader):
    """Searches one state. Used by many threads at a time.

    Raises:
        FileNotFoundError: that state is gone.
        CorruptRecord: it can't be read.
    """

    def __init__(self, directory: FilePath, options: Mapping[str, Any], state: bytes) -> None:
        self.analysis = analysis_of(options)
        known = State.decode(state)
        self._above = known.above
        self._files = state_directory(directory, known)
        index = open_index(self._files, self.analysis)
        self._schema = index.schema
        self._searcher = index.searcher()
        self._size: int | None = None
        self._documents = read_documents(self._files)

    @property
    def size(self) -> int:
        """Bytes of the files of this state."""
        if self._size is None:
            with os.scandir(self._files) as entries:
                self._size = sum(entry.stat().st_size for entry in entries)
        return self._size

    def resolve(self, item: Item) -> Node:
        """Returns what a search asks of this index."""
        return resolve(item, self.analysis)

    @property
    def count(self) -> int:
        """How many documents there are."""
        return self._searcher.num_docs

    def documents(self) -> BitMap:
        """Returns the numbers of the documents."""
        return self._documents

    def count_word(self, word: str) -> int:
        """Returns how many documents have a word."""
        return self._searcher.doc_freq(TEXT_FIELD, word)

    def estimate(self, node: Node) -> int:
        """Returns how many documents answer a search, at most."""
        match node:
            case Term():
                return self.count_word(node.text)
            case Beginning():
                return self._count_beginning(node.text)
            case Phrase():
                return min(self.count_word(word) for _, word in node.parts)
            case AllOf():
                return min(self.estimate(item) for item in node.wanted)
            case AnyOf():
                return min(self.count, sum(self.estimate(item) for item in node.items))
            case _:
                return 0

    def matching(self, node: Node) -> BitMap:
        """Returns the numbers of the documents that answer a search. Blocks."""
        found = BitMap()
        for query in self._parts(node):
            hits = self._searcher.search(query, max(1, self.count), count=False, order_by_field=ID_FIELD).hits
            found.update([number for number, _ in hits])
        return found

    def best(self, node: Node, limit: int, below: Sequence[Path] | None) -> list[tuple[int, float]]:
        """Returns (number, score) of the best documents, best first. Blocks."""
        query = self._query(node)
        if below is not None:
            query = _both(query, self._one_of(DIRECTORY_FIELD, [self._directory(path) for path in below]))
        return self._hits(query, limit)

    def scores(self, node: Node, documents: BitMap) -> dict[int, float]:
        """Returns the scores of some documents; those that don't answer are left out. Blocks."""
        if len(documents) <= _NAMED_AT_MOST:
            named = _both(self._query(node), self._one_of(ID_FIELD, list(documents)))
            return dict(self._hits(named, len(documents)))
        return {
            number: score
            for query in self._parts(node)
            for number, score in self._hits(query, self.count)
            if number in documents
        }

    def _parts(self, node: Node) -> Iterator[Query]:
        """Yields queries whose hits are together those of a search, not too many of each.

        Making the list of hits holds Python's lock: a long one is made in parts, so that others come between.
        """
        query = self._query(node)
        expected = self.estimate(node)
        if expected <= _LISTED_AT_ONCE:
            yield query
            return
        step = self._above * _LISTED_AT_ONCE // expected + 1
        for first in range(0, self._above, step):
            behind = first + step
            part = Query.range_query(
                self._schema, ID_FIELD, FieldType.Integer, first, behind, include_upper=False
            )
            yield _both(query, part)

    def _hits(self, query: Query, limit: int) -> list[tuple[int, float]]:
        limit = min(limit, self.count)
        if limit < 1:
            return []
        hits: list[tuple[float, tantivy.DocAddress]] = self._searcher.search(query, limit, count=False).hits
        numbers = self._searcher.fast_field_values(ID_FIELD, [address for _, address in hits])
        return [
            (number, score_of(score))
            for number, (score, _) in zip(numbers, hits, strict=True)
            if isinstance(number, int)
        ]

    def _count_beginning(self, prefix: str) -> int:
        counts = self._searcher.terms_with_prefix(TEXT_FIELD, prefix, limit=_WORDS_COUNTED)
        if len(counts) >= _WORDS_COUNTED:
            return self.count
        return min(self.count, sum(count for _, count in counts))

    # -- queries of the library --------------------------------------------------------------------

    def _query(self, node: Node) -> Query:
        match node:
            case Term():
                return Query.term_query(self._schema, TEXT_FIELD, node.text, index_option="freq")
            case Beginning():
                return Query.fuzzy_term_query(self._schema, TEXT_FIELD, node.text, 0, True, True)
            case Phrase():
                return Query.phrase_query(self._schema, TEXT_FIELD, list(node.parts))
            case AllOf():
                wanted = [(Occur.Must, self._query(item)) for item in node.wanted]
                unwanted = [(Occur.MustNot, self._query(item)) for item in node.unwanted]
                return Query.boolean_query(wanted + unwanted)
            case AnyOf():
                return Query.boolean_query([(Occur.Should, self._query(item)) for item in node.items])
            case _:
                return Query.empty_query()

    def _directory(self, path: Path) -> int:
        """The term of a path, or of the directory of a file: that has none of its own."""
        key = directory_key(path)
        if path and not self._searcher.doc_freq(DIRECTORY_FIELD, key):
            return directory_key(path[:-1])
        return key

    def _one_of(self, field: str, terms: Sequence[int]) -> Query:
        return Query.term_set_query(self._schema, field, terms)


def _both(query: Query, condition: Query) -> Query:
    """Returns what finds only documents of a condition, with the scores that they have without it."""
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, Query.const_score_query(condition, 0.0))])
