"""Named refs: a name that stands for a version, with a small document beside it.

Snapshots, forks and abandoned forks are the three kinds. The system tree holds the version's root in a ref
(``refs/snapshots/monday``), and everything else that is known in a JSON document
(``versions/snapshots/monday``). Another program may make a ref without a document.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from svc.errors import AlreadyExists, CorruptRecord, InvalidInput, NotFound
from svc.plugin import (
    Condition,
    Database,
    Entry,
    EntryKind,
    Hash,
    Path,
    Transaction,
    Version,
    read_record,
    reference_name,
    reference_path,
    same_content,
)
from svc_versions.documents import ForkDocument, SnapshotDocument, read_state
from svc_versions.names import document_path, normal_name, reference

__all__ = ["NamedRef"]

_SHOWN_NAME = 200

D = TypeVar("D", SnapshotDocument, ForkDocument)

_listed: dict[str, tuple[tuple[Hash | None, ...], list[Any]]] = {}
"""What was last read of each kind, with the hashes of the directories that it was read from."""


class NamedRef(Struct, Generic[D], frozen=True):
    """A ref of one kind: its name without the kind, and everything else that is known in the document."""

    name: str
    root: Hash
    document: D

    prefix: ClassVar[str]
    """What the names of its refs begin with."""

    noun: ClassVar[str]
    """What people call it."""

    form: ClassVar[type[Any]]
    """The class of its document."""

    @property
    def created_ms(self) -> int:
        """When it was made, Unix milliseconds."""
        return self.document.created_at

    @property
    def created_by(self) -> str | None:
        """Who made it, if known."""
        return self.document.created_by

    @property
    def sequence(self) -> int:
        """Number of the last commit before it was made; orders those of one millisecond."""
        return self.document.sequence

    @property
    def ref(self) -> str:
        """The full name of the ref."""
        return reference(self.prefix, self.name)

    def changed(self, **members: Any) -> Self:
        """Returns the same with other members in its document."""
        return replace(self, document=msgspec.structs.replace(self.document, **members))

    @classmethod
    def list(cls, database: Database) -> list[Self]:
        """Returns all of this kind, newest first.

        Reads every document, unless none has changed since they were last read; blocks for as long as that
        takes.
        """
        _, _, system = read_state(database)
        places = (reference_path(reference(cls.prefix, "x"))[:-1], document_path(cls.prefix, "x")[:-1])
        state = tuple(None if entry is None else entry.hash for entry in map(system.get, places))
        known = _listed.get(cls.prefix)
        if known is not None and known[0] == state:
            return list(known[1])
        documents = cls._documents(system)
        roots = list(cls.roots(database, system))
        found = [cls._of(database, name, root, documents.get(name)) for name, root in roots]
        found.sort(key=lambda one: (-one.created_ms, -one.sequence, one.name))
        if all(name in documents for name, _ in roots):  # a repair may bring one that is missing
            _listed[cls.prefix] = state, found
        return list(found)

    @classmethod
    def find(cls, database: Database, name: str) -> Self:
        """Returns the one of this name as it is now."""
        _, _, system = read_state(database)
        return cls.read(database, system, name)

    @classmethod
    def read(cls, database: Database, system: Version, name: str) -> Self:
        """Returns the one of this name as a system tree has it; raises as ``find``."""
        name = normal_name(name)
        try:
            root = cls._root(system, name)
        except InvalidInput:  # No ref can have this name.
            root = None
        if root is None:
            raise cls.missing(name)
        return cls._of(database, name, root, cls._document(system, cls._entry(system, name)))

    @classmethod
    def roots(cls, database: Database, system: Version) -> Iterator[tuple[str, Hash]]:
        """Yields (name, root) of all of this kind."""
        for ref, root in database.refs(cls.prefix, system=system):
            yield ref.partition("/")[2], root

    @classmethod
    def exists(cls, system: Version, name: str) -> bool:
        """Whether there is one of this name."""
        return cls._root(system, name) is not None

    @classmethod
    def missing(cls, name: str) -> NotFound:
        """The error for a name that nothing has."""
        return NotFound(f"There is no {cls.noun} of this name.", name=name[:_SHOWN_NAME])

    @classmethod
    def taken(cls, name: str) -> AlreadyExists:
        """The error for a name that something has."""
        return AlreadyExists(f"A {cls.noun} of this name exists.", name=name)

    def add(self, transaction: Transaction) -> None:
        """Adds the new ref and its document to a transaction, whose commit fails where the name is taken."""
        transaction.set_ref(self.ref, self.root, expected=b"")
        self.write_document(transaction)

    def remove(self, transaction: Transaction, system: Version) -> None:
        """Adds the removal of both to a transaction, whose commit fails where the ref has moved."""
        transaction.set_ref(self.ref, None, expected=self.root)
        path = document_path(self.prefix, self.name)
        if system.get(path) is not None:
            transaction.delete_system(path)

    def write_document(self, transaction: Transaction, condition: Condition | None = None) -> None:
        """Adds the document to a transaction."""
        path = document_path(self.prefix, self.name)
        transaction.put_system(path, msgspec.json.encode(self.document), condition=condition)

    def rewrite_document(self, transaction: Transaction, system: Version) -> None:
        """Adds the document, whose commit fails where somebody has written it since ``system`` was read."""
        self.write_document(transaction, same_content(self._entry(system, self.name)))

    @classmethod
    def _of(cls, database: Database, name: str, root: Hash, document: D | None) -> Self:
        if document is None:
            # Made by another program: the latest time of what it holds is the best that is known.
            document = cls.form(created_at=database.version_of(root).totals().updated_ms)
        return cls(name, root, document)

    @classmethod
    def _root(cls, system: Version, name: str) -> Hash | None:
        entry = system.get(reference_path(reference(cls.prefix, name)))
        return entry.hash if entry is not None and entry.kind is EntryKind.DIRECTORY else None

    @classmethod
    def _entry(cls, system: Version, name: str) -> Entry | None:
        entry = system.get(document_path(cls.prefix, name))
        return entry if entry is not None and entry.kind is EntryKind.FILE else None

    @classmethod
    def _documents(cls, system: Version) -> dict[str, D]:
        base: Path = document_path(cls.prefix, "x")[:-1]
        if system.get(base) is None:
            return {}
        found: dict[str, D] = {}
        for path, entry in system.walk(base, files_only=True):
            document = cls._document(system, entry)
            if document is not None:
                found[cls._name_at(path[len(base) :])] = document
        return found

    @classmethod
    def _document(cls, system: Version, entry: Entry | None) -> D | None:
        """A document; None where there is none, or none any more since a repair could not save it."""
        try:
            return read_record(system, entry, cls.form)
        except CorruptRecord as error:
            if not error.details.get("lost"):
                raise
            return None

    @classmethod
    def _name_at(cls, place: Path) -> str:
        return reference_name(("", cls.prefix, *place)).partition("/")[2]
