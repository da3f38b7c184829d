"""What no flush has taken in, in indexes in memory: each process makes its own, and adds to them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pyroaring import BitMap

from svc.plugin import in_turns
from svc_query.api import IndexDocument, LibraryTail, TermIndexType
from svc_query.indexing.caches import IndexedDocument
from svc_query.indexing.flushing import SOMETIMES_MISSING, tell_untaken
from svc_query.indexing.own_types import presence_term
from svc_query.indexing.rows import ConfigurationRow, IndexRow
from svc_query.indexing.term_tail import TermTail

if TYPE_CHECKING:
    from svc_query.indexing.snapshot import IndexSnapshot

__all__ = ["TailInLibrary", "TailInTerms"]


class TailInLibrary:
    """The documents of the tail in a library's index in memory."""

    def __init__(self, mark: tuple[object, ...], upto: int, tail: LibraryTail) -> None:
        self.mark = mark
        self.upto = upto
        self.tail = tail
        self.untaken = BitMap()

    def add(self, snapshot: IndexSnapshot, row: IndexRow, upto: int) -> None:
        """Adds the documents with numbers from where it stands up to another."""
        for one in in_turns(list(_values_of_tail(snapshot, row, self.upto))):
            self.upto = one.id + 1
            try:
                self.tail.add([one])
            except Exception as error:  # noqa: BLE001 - foreign code: the document is tested instead
                self.untaken.add(one.id)
                _tell(row, one, error, self.untaken)
        self.upto = upto


class TailInTerms:
    """The terms of the documents of the tail."""

    def __init__(
        self,
        mark: tuple[object, ...],
        upto: int,
        index_type: TermIndexType | None,
        options: Mapping[str, Any],
    ) -> None:
        self.mark = mark
        self.upto = upto
        self.tail = TermTail()
        self.untaken = BitMap()
        self._index_type = index_type
        self._options = options

    def add(self, snapshot: IndexSnapshot, row: IndexRow, upto: int) -> None:
        """Adds the documents with numbers from where it stands up to another."""
        index_type, options = self._index_type, self._options
        if index_type is None:
            for number, present in _presence_in_tail(snapshot, self.upto):
                self.upto = number + 1
                self.tail.add(number, present)
        else:
            for one in _values_of_tail(snapshot, row, self.upto):
                self.upto = one.id + 1
                try:
                    terms = {term for value in one.values for term in index_type.terms(value, options)}
                except Exception as error:  # noqa: BLE001 - foreign code: the document is tested instead
                    self.untaken.add(one.id)
                    _tell(row, one, error, self.untaken)
                    continue
                self.tail.add(one.id, terms)
        self.upto = upto


def _tell(row: IndexRow, document: IndexDocument, error: Exception, untaken: BitMap) -> None:
    """Says at once, and not again for each document of the tail, what the flush will keep."""
    if len(untaken) == 1:
        tell_untaken(row.field, row.type, "\x01".join(document.path), error)


def _new_in_tail(snapshot: IndexSnapshot, first: int) -> Iterator[tuple[IndexedDocument, ConfigurationRow]]:
    """Yields the documents of the tail from a number on, with what is indexed of them."""
    tail = snapshot.tail()
    for document in in_turns(tail[bisect_left(tail, first, key=attrgetter("id")) :]):
        if isinstance(document, IndexedDocument):
            yield (
                document,
                snapshot.caches.configuration(snapshot.storage, snapshot.epoch, document.configuration),
            )


def _values_of_tail(snapshot: IndexSnapshot, row: IndexRow, first: int) -> Iterator[IndexDocument]:
    """Yields what an index is told of the documents of the tail from a number on."""
    field, name = row.field, (row.type, row.options, row.format)
    for document, configuration in _new_in_tail(snapshot, first):
        if any(one.name == field and name in one.types for one in configuration.fields):
            values = snapshot.values(document, field)
            if values:
                yield IndexDocument(document.id, document.path, values)


def _presence_in_tail(snapshot: IndexSnapshot, first: int) -> Iterator[tuple[int, list[bytes]]]:
    """Yields which fields the documents of the tail have, from a number on."""
    for document, configuration in _new_in_tail(snapshot, first):
        yield (
            document.id,
            [
                presence_term(field.name)
                for field in configuration.fields
                if (field.source or field.name in SOMETIMES_MISSING) and snapshot.values(document, field.name)
            ],
        )
