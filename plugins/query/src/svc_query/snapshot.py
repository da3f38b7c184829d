"""What a query sees: all documents at one state, however they are found.

Two things answer to ``Snapshot``: the index (``svc_query.indexing``), and a version that is walked
(``svc_query.walking``). Planner and executor know neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from svc.plugin import Hash, Path
from svc_query.api import IndexType, Value

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["VIRTUAL_FIELDS", "Coverage", "Document", "FieldIndex", "FieldUse", "Progress", "Snapshot"]

VIRTUAL_FIELDS = {
    "@path": "string",
    "@filename": "string",
    "@extension": "string",
    "@content_type": "string",
    "@hash": "string",
    "@size": "integer",
    "@created_at": "timestamp",
    "@updated_at": "timestamp",
}
"""Fields that every file has without being read, and the type of their values.

``@path`` is the path as text, ``@extension`` the lower-case ending without the dot (missing where there is
none), ``@hash`` hex; times are Unix milliseconds."""


class Document(msgspec.Struct, frozen=True, gc=False):
    """A file, as queries see it; ``id`` is its number in the snapshot.

    ``fields`` are values of the indexed fields that are not virtual, as they were converted; a field that the
    file does not have is not there. Long texts are left out of it: ask ``Snapshot.values``.
    """

    id: int
    path: Path
    size: int
    content_type: str | None
    created_ms: int
    updated_ms: int
    hash: Hash
    fields: Mapping[str, Sequence[Value]]


class FieldIndex(msgspec.Struct, frozen=True):
    """One index over one field: of some directories, or of all.

    Attributes:
        options: what its ``normalize`` returned.
        reader: a ``TermReader`` or ``LibraryReader`` of what was flushed.
        tail: for a library: a reader of what was not; None for terms, whose tail is tested.
        untaken: the documents whose values the type did not take: nothing but a test finds them.
    """

    field: str
    type: IndexType
    options: Mapping[str, Any]
    reader: Any
    tail: Any = None
    untaken: BitMap | None = None


class FieldUse(msgspec.Struct, frozen=True):
    """What the configurations at, above and below a directory say of a field.

    Attributes:
        value_types: one, unless configurations differ.
        index_types: names of the types that some configuration gives it.
        everywhere: whether one configuration, with one set of types, holds for all files below the directory
            that have the field: then its indexes know all of them.
    """

    name: str
    value_types: frozenset[str]
    index_types: frozenset[str]
    everywhere: bool


class Coverage(msgspec.Struct, frozen=True):
    """What is indexed at and below a directory; virtual fields too, where a configuration names them."""

    fields: Mapping[str, FieldUse]


class Progress(msgspec.Struct, frozen=True):
    """How far a reindex that touches a directory has come, in files, all of them as far as known.

    ``since_ms`` is since when answers may be stale; ``eta_ms`` when it will be done, None while nobody can
    tell.
    """

    indexed: int
    total: int
    since_ms: int
    eta_ms: int | None


class Snapshot(Protocol):
    """All documents at one state. Valid inside the call that gave it.

    Attributes:
        sequence: number of the commit that it is of.
        epoch: names the numbering: while it is the same, a number means the same document.
        indexed: whether indexes answer; a version that is walked has none.
        knows_tail: whether term readers know the documents of the tail, too, so that none need be tested.
    """

    sequence: int
    epoch: bytes
    indexed: bool
    knows_tail: bool

    def live(self) -> BitMap:
        """Returns the numbers of all documents; not to be changed."""

    def below(self, path: Path) -> BitMap:
        """Returns the numbers of the document at a path and of those below it; not to be changed. Cached."""

    def count_below(self, path: Path) -> int:
        """Returns how many documents are at and below a path; cheap."""

    def in_path_order(
        self, path: Path, *, after: Path | None = None, reverse: bool = False, among: BitMap | None = None
    ) -> Iterator[tuple[Path, int]]:
        """Yields (path, number) at and below a path, in path order, from any point at once.

        It starts behind ``after``, before it with ``reverse``. Only the live documents of ``among`` are
        wanted, which makes it cheaper. Others may come too, and now and then a number that is none of them,
        for many that were passed over at once.
        """

    def document(self, number: int) -> Document | None:
        """Returns a document; None when it is dead or never was."""

    def paths_of(self, numbers: Iterable[int]) -> Iterator[tuple[Path, int]]:
        """Yields (path, number) of those documents that live, without their values: cheaper than those."""

    def documents(self, numbers: Iterable[int]) -> Iterator[Document]:
        """Yields those documents that live."""

    def values(self, document: Document, field: str) -> Sequence[Value]:
        """Returns all values of a field, virtual ones and long texts too; empty when it has none."""

    def tail(self) -> Sequence[Document]:
        """Returns the live documents that were not flushed yet, by number; not to be changed.

        Term readers do not know them unless ``knows_tail``.
        """

    def indexes(self, field: str) -> Sequence[FieldIndex]:
        """Returns the indexes over a field."""

    def coverage(self, path: Path) -> Coverage:
        """Returns what is indexed at and below a directory."""

    def progress(self, path: Path) -> Progress | None:
        """Returns how far the reindexing of anything at, above or below a directory is; None without one."""

    def waiting(self, path: Path) -> int:
        """Returns how many changed files at or below a path still wait to be read by their parsers."""
