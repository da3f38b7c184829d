"""Secondary indexes: what an index type is given, and what it answers.

The driver (the query plugin's view) numbers documents, extracts field values and hands over batches of
changes; an index turns a lookup into a set of document numbers. An index sees no HTTP and no permissions.
"""

from __future__ import annotations

import pathlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from svc.paths import Path

__all__ = [
    "FieldValue",
    "Index",
    "IndexChange",
    "IndexDefinition",
    "IndexKeys",
    "IndexMatches",
    "IndexType",
    "Lookup",
]

FieldValue = str | int | float | bool
"""One extracted value. Timestamps are integers, Unix milliseconds."""


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """One index of one directory: a field, a type, and how the field's values are to be read.

    Attributes:
        directory: the directory whose configuration defines the index.
        field_name: the field's name, ``@``-names included.
        type_name: name of the index type.
        value_type: ``string``, ``integer``, ``float``, ``boolean``, ``timestamp`` or ``auto``.
        options: further members of the definition, which the type has checked.
    """

    directory: Path
    field_name: str
    type_name: str
    value_type: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexChange:
    """One document's values of the indexed field, before and after a batch of commits.

    Attributes:
        document: the driver's number of the document, 0 to 2**32 - 1; numbers are dense, and a freed
            number is used again only after the index has seen it go.
        path: where the document lies.
        old: the values that the index holds for it; empty when there are none.
        new: the values that it is to hold; empty when the document left.
    """

    document: int
    path: Path
    old: tuple[FieldValue, ...]
    new: tuple[FieldValue, ...]


@dataclass(frozen=True, slots=True)
class Lookup:
    """A question to an index.

    Attributes:
        operator: name of the query operator.
        value: its operand; a sequence for ``in``.
        value2: the upper end for ``between``, else None.
        options: further members of the query's leaf (``threshold``, ``fuzziness``, ``algorithm``).
        limit: an answer may stop after this many documents when they are the best ones; None: all.
    """

    operator: str
    value: Any
    value2: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class IndexMatches:
    """An answer of an index.

    Attributes:
        documents: numbers of the matching documents; a roaring bitmap, where one is at hand.
        scores: score of each document, 0 to 1; None when every match is exact (1.0).
        exact: False says that these are candidates: the caller checks each against its value with
            ``QueryOperator.score``.
        highlights: for a document, the matched passages, where the type knows them.
    """

    documents: Collection[int]
    scores: Mapping[int, float] | None = None
    exact: bool = True
    highlights: Mapping[int, Sequence[str]] | None = None


class IndexKeys(Protocol):
    """The ordered byte keys of one index, within one transaction: a view's storage, narrowed to the index.

    Written in one transaction with "applied up to N"; rebuilt from the log when lost.
    """

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None."""

    def put(self, key: bytes, value: bytes) -> None:
        """Sets a key; in ``Index.apply`` only."""

    def delete(self, key: bytes) -> bool:
        """Removes a key and says whether it was there; in ``Index.apply`` only."""

    def scan(self, prefix: bytes = b"", after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yields keys and values in key order, behind ``after``, while keys begin with ``prefix``."""


class Index(ABC):
    """One open index. Writes come from one thread at a time; lookups may come from others meanwhile.

    ``keys`` is the index's storage as the transaction of the call sees it; it is not kept beyond the call.
    """

    @abstractmethod
    def apply(self, changes: Sequence[IndexChange], sequence: int, keys: IndexKeys) -> None:
        """Applies a batch. It may come a second time after a crash, and must then change nothing.

        Args:
            changes: at most one change a document.
            sequence: the commit that the index reflects afterwards. An index with files of its own stores it
                beside them, since they are not part of the transaction.
            keys: writable storage.
        """

    @abstractmethod
    def lookup(self, lookup: Lookup, keys: IndexKeys) -> IndexMatches:
        """Answers a lookup whose operator the type serves. Called in a threadpool; may block.

        Raises:
            InvalidInput: the operand is not of a kind that the index can compare; names the field.
        """

    @abstractmethod
    def estimate(self, lookup: Lookup, keys: IndexKeys) -> int:
        """Roughly how many documents a lookup would give, in well under a millisecond, for the planner."""

    def ordered(
        self, keys: IndexKeys, *, reverse: bool = False, after: FieldValue | None = None
    ) -> Iterator[tuple[FieldValue, int]]:
        """Values with their documents in order of value, for ``order_by``; types with ``is_ordered`` only."""
        raise TypeError(f"{type(self).__name__} has no order.")

    def flush(self) -> None:
        """Makes files of the index's own durable up to what was applied. May block."""

    def close(self) -> None:
        """Gives back what the index holds open."""


class IndexType(ABC):
    """A kind of index, such as ``exact``, ``trigram`` or ``fulltext``.

    Attributes:
        name: what ``indexes.json`` calls it.
        format: number of the layout of its data; another number makes the kernel rebuild.
        operators: names of the query operators that it serves.
        is_ordered: whether its indexes implement ``ordered``.
    """

    name: ClassVar[str]
    format: ClassVar[int]
    operators: ClassVar[frozenset[str]]
    is_ordered: ClassVar[bool] = False

    def check(self, definition: IndexDefinition) -> None:
        """Refuses a definition that this type cannot serve, when the configuration is stored.

        Raises:
            InvalidInput: says which member is wrong, and why.
        """

    @abstractmethod
    def open(self, definition: IndexDefinition, directory: pathlib.Path) -> Index:
        """Opens the index of a definition, empty or with what is stored. May block.

        Args:
            definition: what to index.
            directory: of this index alone, for libraries that keep files of their own; it exists only if the
                index has made it, and vanishes when the index is rebuilt.
        """
