"""What an index type, a query operator and a parser are made of: the public module of the driver.

An extension imports this module and nothing else of the plugin. Nothing here knows of HTTP, of JSON or of the
log: documents have numbers, fields have values, and an index answers which numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import msgspec

from svc.plugin import Family, NamedRegistry, Path, hookspec
from svc_query.parsers import Guessed, InPart, Parser, ParserInput

if TYPE_CHECKING:
    from pyroaring import BitMap

    from svc.plugin import Database
    from svc_query.indexing.renewing import Reindex

__all__ = [
    "FAMILIES",
    "INDEX_TYPES",
    "MAXIMUM_TERM_BYTES",
    "PARSERS",
    "QUERY_OPERATORS",
    "Guessed",
    "InPart",
    "IndexDocument",
    "IndexType",
    "Leaf",
    "LibraryIndexType",
    "LibraryReader",
    "LibraryTail",
    "LibraryWriter",
    "Parser",
    "ParserInput",
    "Predicate",
    "QueryOperator",
    "RankedPredicate",
    "TermIndexType",
    "TermReader",
    "Value",
    "reindex_of",
]

Value = None | bool | int | float | str | tuple[float, ...]
"""One value of a field of a document. None is JSON's null; a timestamp is Unix milliseconds; numbers beyond
2^53 are whole ``int``. A tuple is an array of numbers, where the field asks for arrays as a whole."""

MAXIMUM_TERM_BYTES = 1_024
"""Longer terms are cut by the driver: an index whose terms may be longer gives candidates only."""


class IndexDocument(NamedTuple):
    """What an index is told of one document.

    Attributes:
        id: number of the document, below 2^32. Numbers increase; a document that changes gets a new one.
        path: where it stands; it never changes for one number.
        values: those of the field that the index is for; never empty.
    """

    id: int
    path: Path
    values: Sequence[Value]


# -- index types -----------------------------------------------------------------------------------


class IndexType(ABC):
    """A way to find documents by the values of a field.

    Stateless: one object serves all databases of a process. A subclass of ``TermIndexType``, whose data the
    driver keeps, or of ``LibraryIndexType``.

    Attributes:
        name: what ``indexes.json`` calls it under ``type``.
        format: number of the layout of its data; another number makes them anew.
        options: members of an entry of ``indexes.json`` that it takes, beside those of the driver.
    """

    name: ClassVar[str]
    format: ClassVar[int]
    options: ClassVar[frozenset[str]] = frozenset()

    def normalize(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Checks the members of an entry that are this type's, and fills in the defaults.

        What it returns names the data: two directories that come to the same options share one index. It
        holds values that JSON has, and nothing that the caller must not see.

        Args:
            options: those of ``self.options`` that the entry has.

        Raises:
            InvalidInput: one is not as it should be; ``field`` names it.
        """
        return dict(options)


class TermIndexType(IndexType):
    """An index that is a set of terms for each value.

    The driver keeps the terms, in order, with the documents of each, in immutable segments; the
    type says only what the terms of a value are.

    Attributes:
        ordered: whether a value has one term that sorts as the value does: null, booleans, numbers, strings.
            Rows can then be ordered by it; wide ranges of terms are cheap, for 2 bytes a document more.
    """

    ordered: ClassVar[bool] = False

    @abstractmethod
    def terms(self, value: Value, options: Mapping[str, Any]) -> Iterable[bytes]:
        """Returns the terms of a value; one may come twice. Called for every value of every document.

        Args:
            value: of the field.
            options: what ``normalize`` returned.
        """


class TermReader(Protocol):
    """The terms of one index, as a predicate sees them. Whatever it answers may hold documents that are dead.

    ``low`` is inclusive, ``high`` is not; None leaves a side open. Cheap unless said otherwise.
    """

    def count(self, term: bytes) -> int:
        """Returns how many documents have a term, at most."""

    def postings(self, term: bytes) -> BitMap:
        """Returns the documents that have a term; a new bitmap."""

    def postings_of_any(self, terms: Iterable[bytes]) -> BitMap:
        """Returns the documents that have one of some terms, in one go; a new bitmap."""

    def postings_of_all(self, terms: Iterable[bytes]) -> BitMap:
        """Returns the documents that have all of some terms, at least one; a new bitmap.

        It may hold some that have only the rarest of them, where looking further would cost more than to
        test those few.
        """

    def terms(self, low: bytes | None = None, high: bytes | None = None) -> Iterator[bytes]:
        """Yields the terms of a range, without order; one may come several times."""

    def count_range(self, low: bytes | None, high: bytes | None) -> int:
        """Returns how many documents a range of terms has, at most: one may count several times."""

    def postings_range(self, low: bytes | None, high: bytes | None) -> BitMap:
        """Returns the documents of a range of terms; a new bitmap. Costs by the terms unless ``ordered``."""

    def scan(
        self, low: bytes | None = None, high: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, Sequence[int]]]:
        """Yields (term, documents) in the order of the terms; documents in increasing order."""

    def scan_among(
        self, low: bytes | None, high: bytes | None, among: BitMap, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, BitMap]]:
        """Yields (term, those of some documents that have it) in the order of the terms.

        Many terms that none of them has are passed over at once; for each such run a term may come with an
        empty bitmap, so that who waits for the next can count what was looked at.
        """


class LibraryIndexType(IndexType):
    """An index on a library that keeps files of its own."""

    @abstractmethod
    def open_writer(
        self, directory: FilePath, options: Mapping[str, Any], state: bytes | None
    ) -> LibraryWriter:
        """Opens an index to write to it. One process does at a time, in a plain thread; may block.

        Args:
            directory: of this index alone; empty at first. Files may be ahead of ``state`` after a crash.
            options: what ``normalize`` returned.
            state: what the last ``flush`` returned that counts; None when none does.

        Raises:
            CorruptRecord: that state is gone, or can't be read.
        """

    @abstractmethod
    def open_reader(self, directory: FilePath, options: Mapping[str, Any], state: bytes) -> LibraryReader:
        """Opens an index as it was at a ``flush``, in any process; while others write.

        What was added behind that flush may be found; the driver leaves it out.

        Raises:
            FileNotFoundError: that state is gone: the driver asks for the newest one.
        """

    @abstractmethod
    def open_tail(self, options: Mapping[str, Any]) -> LibraryTail:
        """Returns an empty index in memory, for some thousands of documents that no flush has taken in."""


class LibraryWriter(ABC):
    """Takes documents in. Used by one thread at a time."""

    @abstractmethod
    def add(self, documents: Iterable[IndexDocument]) -> None:
        """Adds documents. One whose number is there already, from files that were ahead, replaces it."""

    @abstractmethod
    def flush(self, dead: BitMap) -> bytes:
        """Makes what was added visible to readers, and returns what names this state. Blocks.

        Nothing need be synced. Files of the state before are kept until the next flush.

        Args:
            dead: documents that need not be kept; it is enough to forget them now and then.
        """

    @abstractmethod
    def close(self) -> None:
        """Lets go of everything; what was added since the last flush may be lost."""


class LibraryReader(ABC):
    """Answers from one state. What else it can do is between the index type and its operators.

    Attributes:
        blocks: whether a predicate that asks it takes long enough (some 0.2 ms) to be asked in a thread.
    """

    blocks: ClassVar[bool] = True

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes that the index takes on the disk, or in memory."""

    def documents(self) -> BitMap | None:
        """Returns the documents that it was given, dead ones too; None: it can't tell. Cheap; not changed.

        Where directories have different indexes, a query asks each for what it knows, and tests the rest.
        """
        return None

    def close(self) -> None:
        """Lets go of files and memory."""
        return


class LibraryTail(ABC):
    """A small index in memory. Used by one thread at a time."""

    @abstractmethod
    def add(self, documents: Iterable[IndexDocument]) -> None:
        """Adds documents."""

    @abstractmethod
    def reader(self, beside: LibraryReader | None = None) -> LibraryReader:
        """Returns a reader of what was added, for the same operators as that of the files; cheap.

        Args:
            beside: the reader of the files, so that scores are comparable with its: how rare a word is, some
                documents alone can't tell.
        """


# -- query operators -------------------------------------------------------------------------------


class Leaf(msgspec.Struct, frozen=True):
    """A leaf of a filter, as a caller gave it: ``{"field": ..., "op": ..., "value": ...}``.

    Attributes:
        field: name of the field.
        op: name of the operator.
        value: what it is compared with: any value of JSON; timestamps and numbers are as the field has them.
        options: the other members (``value2``, ``threshold``, ...), only those that the operator takes.
        value_type: of the field: ``auto``, ``string``, ``integer``, ``float``, ``boolean``, ``timestamp``,
            ``text`` or ``array``.
        index_options: what ``normalize`` of the field's index types returned, by the name of the type, where
            the operator answers from those; empty when it answers from none. Where directories differ in
            them, the leaf is compiled once for each.
    """

    field: str
    op: str
    value: Any = None
    options: Mapping[str, Any] = {}
    value_type: str = "auto"
    index_options: Mapping[str, Mapping[str, Any]] = {}


class QueryOperator(ABC):
    """What a leaf of a filter may ask. Stateless: one object serves all databases of a process.

    Attributes:
        name: what a filter calls it under ``op``.
        index_types: names of index types, one set for each way to answer: all types of one set are needed.
            The first set that a field has is used.
        options: members of a leaf that it takes beside ``field``, ``op`` and ``value``.
        needs_value: whether the leaf must have ``value``.
    """

    name: ClassVar[str]
    index_types: ClassVar[tuple[tuple[str, ...], ...]]
    options: ClassVar[frozenset[str]] = frozenset()
    needs_value: ClassVar[bool] = True

    @abstractmethod
    def compile(self, leaf: Leaf) -> Predicate:
        """Returns the leaf, ready to be asked; cheap.

        Raises:
            InvalidInput: the value or an option is not one that the operator takes; ``field`` names it.
        """


class Predicate(ABC):
    """One leaf of a query. ``test`` is its meaning; the rest says how an index makes that cheap.

    Attributes:
        certain: whether every candidate matches, with the score 1, so that none need be tested.
        scored: whether scores differ from 1, so that candidates are tested when scores are needed.
        bounds: (low, high) where the one index that answers is ``ordered``: every document that matches has
            a term from ``low`` on and before ``high``; None: nothing is known. Rows in the order of that
            index are then sought there alone.
    """

    certain: bool = False
    scored: bool = False
    bounds: tuple[bytes | None, bytes | None] | None = None

    @abstractmethod
    def test(self, value: Value) -> float | None:
        """Returns the score of one value, above 0 and at most 1; None when it does not match.

        A document matches when one of its values does, with the best score. Does not block; a value of a
        type that the operator does not know does not match.
        """

    def test_all(self, values: Sequence[Value]) -> float | None:
        """Returns the score of a document that has these values; ``ne`` is one that looks at all of them."""
        best: float | None = None
        for value in values:
            score = self.test(value)
            if score is not None and (best is None or score > best):
                best = score
        return best

    @abstractmethod
    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """Returns how many documents ``candidates`` would give, at most; None when it gives none. Cheap.

        Args:
            indexes: readers by the name of the index type: a ``TermReader``, or the reader of its library.
        """

    @abstractmethod
    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """Returns documents, among them all that match; None when the indexes can't tell.

        Args:
            indexes: as for ``estimate``.
        """

    def matches(self, text: str) -> list[tuple[int, int]]:
        """Returns where in a text the leaf matches: (start, end) in characters, in order, not overlapping."""
        return []


class RankedPredicate(Predicate):
    """A leaf that knows its best documents without looking at all: full text, nearest neighbours.

    Its scores come from the index; ``test`` says only whether a value matches, and ``best`` how well.
    """

    scored = True

    @abstractmethod
    def best(
        self, indexes: Mapping[str, Any], limit: int, *, below: Sequence[Path] | None = None
    ) -> list[tuple[int, float]]:
        """Returns the documents with the best scores: (number, score), best first, at most ``limit``.

        Scores are above 0 and at most 1, and comparable between readers of the same type. May block.

        Args:
            indexes: as for ``estimate``.
            limit: how many; fewer means that there are no more.
            below: only documents at or below one of these paths; one that can't tell leaves it out.
        """

    def scores(self, indexes: Mapping[str, Any], documents: BitMap) -> dict[int, float]:
        """Returns the scores of some documents that match; those left out do not. May block."""
        return {number: score for number, score in self.best(indexes, 1 << 31) if number in documents}


# -- families --------------------------------------------------------------------------------------


@hookspec
def svc_register_index_types(index_types: NamedRegistry[IndexType]) -> None:
    """Adds index types: ``index_types.add(MyIndexType())``.

    Called at boot, in the processes that serve databases and in commands that query.
    """


@hookspec
def svc_register_query_operators(query_operators: NamedRegistry[QueryOperator]) -> None:
    """Adds query operators: ``query_operators.add(MyOperator())``.

    Called at boot, in the processes that serve databases and in commands that query.
    """


@hookspec
def svc_register_parsers(parsers: NamedRegistry[Parser]) -> None:
    """Adds parsers: ``parsers.add(MyParser())``.

    Called at boot, in the processes that serve databases and in commands that query.
    """


INDEX_TYPES: Family[IndexType] = Family("index_types", "index type", IndexType)
QUERY_OPERATORS: Family[QueryOperator] = Family("query_operators", "query operator", QueryOperator)
PARSERS: Family[Parser] = Family("parsers", "parser", Parser)
FAMILIES = (INDEX_TYPES, QUERY_OPERATORS, PARSERS)


def reindex_of(database: Database) -> Reindex:
    """Returns what a task needs to index files again; raises NotFound where queries are not in use."""
    from svc_query.indexing.renewing import Reindex

    return Reindex(database)
