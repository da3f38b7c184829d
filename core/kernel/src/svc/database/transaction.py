"""A transaction: path operations that are committed together, or not at all.

Operations queue without touching the database; leaving the context commits them. Every check (does it
exist, is it the expected state) is made when the commit is made, against the state that it changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from svc.database.committer import CommitRequest
from svc.database.content_checks import CheckedContents
from svc.database.operations import (
    Condition,
    Delete,
    Link,
    MakeDirectory,
    Operation,
    OperationResult,
    Put,
    PutEntry,
    Relocate,
    SetRef,
    Unchanged,
    check_link_target,
    refuse_system_path,
)
from svc.database.origins import Origin, refuse_origin
from svc.database.record_versions import renewed_content
from svc.database.references import HEAD_NAME, normal_reference, reference_path
from svc.errors import InvalidInput
from svc.hashing import Hash
from svc.objects.chunking import WHOLE_LIMIT
from svc.objects.content import SmallContents, StoredContent, append_ahead
from svc.objects.store import PendingObjects
from svc.paths import Path
from svc.tree import Entry

if TYPE_CHECKING:
    from svc.database.database import Database
    from svc.database.holds import Hold

__all__ = ["CommitResult", "OperationHandle", "Transaction"]

_APPEND_AHEAD = 1024 * 1024


class CommitResult(msgspec.Struct, frozen=True, gc=False):
    """What a committed transaction became.

    Attributes:
        sequence: number of its commit.
        version: root hash of the tree that it changed, after it.
        time_ms: when, Unix milliseconds.
    """

    sequence: int
    version: Hash
    time_ms: int


class OperationHandle(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An operation of a transaction; after the commit it has a result."""

    _transaction: Transaction
    _index: int

    @property
    def result(self) -> OperationResult:
        """What the operation did; only after the commit."""
        return self._transaction.results[self._index]


class Transaction:
    """Operations that wait for their commit. Not to be shared between threads.

    Made by ``Database.transaction``; use it as a context manager, or call ``commit``.
    """

    def __init__(
        self,
        database: Database,
        actor: str | None,
        message: str | None,
        ref: str,
        *,
        checks_contents: bool = True,
    ) -> None:
        self._database = database
        self._checks_contents = checks_contents
        refuse_origin(message)
        self._actor = actor
        self._message = message
        self._origin: Origin | None = None
        self._origins: dict[int, Origin] = {}
        self._ref = normal_reference(ref)
        self._operations: list[Operation | SetRef] = []
        self._pending = PendingObjects()
        self._small = SmallContents(database.objects, self._pending)
        self._hold: Hold | None = None
        self._count = 0
        self.results: list[OperationResult] = []
        self.result: CommitResult | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._operations and self.result is None:
                self.commit()
        finally:
            self._let_go()

    def __len__(self) -> int:
        return self._count

    def put(
        self,
        path: Path,
        content: StoredContent | bytes,
        *,
        content_type: str | None = None,
        created_ms: int | None = None,
        updated_ms: int | None = None,
        condition: Condition | None = None,
    ) -> OperationHandle:
        """Stores a content at a path; parents appear by themselves.

        Args:
            path: where.
            content: bytes, or what ``Database.store`` returned.
            content_type: media type to keep with it.
            created_ms: Unix milliseconds; None keeps a replaced file's, or takes the commit's.
            updated_ms: Unix milliseconds; None takes the commit's.
            condition: what must stand at the path now.

        Raises at the commit:
            Conflict: a directory stands there, or a file where a directory is needed.
            PreconditionFailed: the condition does not hold.
        """
        refuse_system_path(path)
        stored = self._take(content)
        return self._add(Put(path, stored, content_type, created_ms, updated_ms, condition))

    def put_entry(self, path: Path, entry: Entry, *, condition: Condition | None = None) -> OperationHandle:
        """Puts an entry of another version at a path; a directory comes with everything below.

        Raises:
            InvalidInput: the database does not hold what the entry names.
        """
        refuse_system_path(path)
        if not self._database.holds_entry(entry, self._held()):
            raise InvalidInput("The entry names a content that is not stored.", field="entry")
        return self._add(PutEntry(path, entry, condition))

    def delete(
        self, path: Path, *, recursive: bool = False, condition: Condition | None = None
    ) -> OperationHandle:
        """Removes what stands at a path.

        Raises at the commit:
            NotFound: nothing is there.
            Conflict: it is a directory that is not empty, and ``recursive`` is false.
        """
        refuse_system_path(path)
        return self._add(Delete(path, recursive, condition))

    def move(
        self,
        source: Path,
        destination: Path,
        *,
        condition: Condition | None = None,
        overwrite: bool = False,
        takes_directories: bool = True,
    ) -> OperationHandle:
        """Moves a file, link or directory with everything below; costs no data.

        Args:
            source: what to move.
            destination: its new path.
            condition: what must stand at the source now.
            overwrite: replace a file or link at the destination.
            takes_directories: false makes a directory at the source a Conflict at the commit.
        """
        refuse_system_path(source)
        refuse_system_path(destination)
        operation = Relocate(
            source, destination, False, overwrite, condition, takes_directories=takes_directories
        )
        return self._add(operation)

    def copy(
        self, source: Path, destination: Path, *, overwrite: bool = False, takes_directories: bool = True
    ) -> OperationHandle:
        """Copies a file, link or directory with everything below; costs no data, and keeps times.

        Arguments as those of ``move``.
        """
        refuse_system_path(source)
        refuse_system_path(destination)
        return self._add(Relocate(source, destination, True, overwrite, takes_directories=takes_directories))

    def link(
        self,
        path: Path,
        target: str,
        *,
        created_ms: int | None = None,
        updated_ms: int | None = None,
        condition: Condition | None = None,
    ) -> OperationHandle:
        """Makes or replaces a symbolic link.

        Args:
            path: where the link stands.
            target: absolute path that it names; it need not exist.
            created_ms: as for ``put``.
            updated_ms: as for ``put``.
            condition: what must stand at the path now.
        """
        refuse_system_path(path)
        check_link_target(target)
        return self._add(Link(path, target, created_ms, updated_ms, condition))

    def mkdir(self, path: Path, *, exist_ok: bool = False, at_ms: int | None = None) -> OperationHandle:
        """Makes a directory, and its parents.

        Raises at the commit:
            AlreadyExists: something stands there (a directory is fine with ``exist_ok``).
        """
        refuse_system_path(path)
        return self._add(MakeDirectory(path, exist_ok, at_ms))

    def put_system(
        self, path: Path, content: bytes, *, condition: Condition | None = None
    ) -> OperationHandle:
        """Stores a content in the system tree, which no file route can name; ``condition`` as for ``put``."""
        stored = self._take(content, system=True)
        return self._add(Put(path, stored, None, condition=condition, system=True))

    def link_system(self, path: Path, target: str, *, condition: Condition | None = None) -> OperationHandle:
        """Makes or replaces a link in the system tree: a text that stands in its directory, without a chunk.

        Raises at the commit:
            Conflict: something that is not a link stands there.
        """
        check_link_target(target)
        return self._add(Link(path, target, condition=condition, system=True))

    def renew_record(self, path: Path, entry: Entry, *, system: bool = False) -> bool:
        """Writes the file record of a file in its present version; all else stays as it is. Reads the file.

        Args:
            path: where the file stands.
            entry: what stands there.
            system: whether it is in the system tree.

        Returns:
            Whether there is anything to write: False where the file has no record, or one of this version.

        Raises:
            CorruptRecord: the record or a chunk is damaged.
        Raises at the commit:
            PreconditionFailed: another file, or the same with other times, stands there by then.
        """
        if not system:
            refuse_system_path(path)
        if entry.record is None:
            return False
        self._held()
        stored = renewed_content(self._database.objects, entry, system=system)
        if stored is None:
            return False
        content = self._take(stored, system)
        times = entry.created_ms, entry.updated_ms
        self._add(Put(path, content, entry.content_type, *times, Unchanged(entry=entry), system))
        return True

    def put_system_entry(
        self, path: Path, entry: Entry, *, condition: Condition | None = None
    ) -> OperationHandle:
        """Puts an entry of the system tree at another path there; a directory comes with everything below.

        Raises:
            InvalidInput: the database does not hold what the entry names.
        """
        if not self._database.holds_entry(entry, self._held()):
            raise InvalidInput("The entry names a content that is not stored.", field="entry")
        return self._add(PutEntry(path, entry, condition, system=True))

    def delete_system(self, path: Path, *, condition: Condition | None = None) -> OperationHandle:
        """Removes what stands at a path of the system tree, with everything below."""
        return self._add(Delete(path, recursive=True, condition=condition, system=True))

    def set_ref(self, name: str, root: Hash | None, *, expected: Hash | None = None) -> OperationHandle:
        """Moves HEAD or a named ref to a root; makes or removes a named ref.

        Args:
            name: ``HEAD``, or ``<kind>/<name>``.
            root: a root that was committed; None removes the ref.
            expected: the root that it must have now; ``b""`` asks that it does not exist yet.

        Raises:
            InvalidInput: HEAD or the ref that the transaction changes would be removed, or moved after
                the transaction has changed paths of it.
            NotFound: no version has this root.
        """
        name = normal_reference(name)
        if root is None and name in (HEAD_NAME, self._ref):
            raise InvalidInput(f"{name} cannot be removed here.", field="name")
        if name == self._ref and any(_is_path_operation(operation) for operation in self._operations):
            raise InvalidInput("A ref is moved before its paths are changed, not after.", field="name")
        if root is not None:
            self._held()
            self._database.require_version(root)
        return self._add(SetRef(name, root, expected))

    def copy_ref(self, source: str, name: str) -> OperationHandle:
        """Makes a named ref of what another ref names when the commit is made; nothing can come between.

        Args:
            source: ``HEAD``, or ``<kind>/<name>``.
            name: the new ref, ``<kind>/<name>``.

        Raises:
            InvalidInput: the transaction has changed paths of ``source`` already.
        Raises at the commit:
            AlreadyExists: the name is taken.
            NotFound: there is no ref ``source``.
        """
        source, name = normal_reference(source), normal_reference(name)
        if source == self._ref and any(_is_path_operation(operation) for operation in self._operations):
            raise InvalidInput("A ref is copied before its paths are changed, not after.", field="name")
        reference_path(name)
        return self._add(SetRef(name, None, b"", source))

    @contextmanager
    def merging(self, origin: Origin | None) -> Iterator[None]:
        """What is added within was made elsewhere: the log records it apart, with where and by whom.

        All of the transaction is one commit. What was made here (None) stands first in its record, what
        follows each other of one origin stands together.
        """
        self._origin = origin
        try:
            yield
        finally:
            self._origin = None

    def commit(self) -> CommitResult:
        """Commits the operations and returns when they are durable; blocks.

        Raises:
            SvcError: the first operation that failed, its number in ``details["operation"]``; nothing
                of the transaction was applied.
            InvalidInput: also where a check of a plugin refuses a content at its path.
        """
        if self.result is not None:
            raise InvalidInput("The transaction is committed already.")
        if self._checks_contents and any(_is_path_operation(operation) for operation in self._operations):
            checks = self._database.content_checks()
            if checks:
                CheckedContents(
                    self._database, self._ref, self._operations, self._small, self._pending
                ).check(checks)
        if self._small.size:
            self._settle()
        request = CommitRequest(self._ref, self._operations, self._pending, self._actor, self._message)
        # Should this wait be given up, whoever commits the request goes on with it.
        request.hold = self._hold
        request.origins = self._origins
        self._database.submit(request)
        if self._hold is not None:
            self._hold.release()
        self.results = request.results
        self.result = CommitResult(request.sequence, request.version, request.time_ms)
        self._let_go()
        return self.result

    def _let_go(self) -> None:
        self._operations = []
        self._pending = PendingObjects()
        self._hold = None

    def _held(self) -> Hold:
        """What keeps all that the transaction looks up, until it has ended."""
        if self._hold is None:
            self._hold = self._database.hold()
        return self._hold

    def _settle(self) -> None:
        """Makes pending what waits: beside what was appended ahead, or for the commit's own append."""
        if self._pending.placed:
            self._append_ahead()
            return
        self._database._require_writable()
        self._held()
        self._small.settle()

    def _append_ahead(self) -> None:
        self._database._require_writable()
        self._held()
        self._small.append_ahead()

    def _add(self, operation: Operation | SetRef) -> OperationHandle:
        if self._origin is not None:
            self._origins[self._count] = self._origin
        self._operations.append(operation)
        self._count += 1
        return OperationHandle(self, len(self._operations) - 1)

    def _take(self, content: StoredContent | bytes, system: bool = False) -> StoredContent:
        """Takes a content: what is appended ahead, and what waits for the commit, is decided here."""
        if isinstance(content, StoredContent):
            stored = content
        elif system or len(content) > WHOLE_LIMIT:
            stored = self._database.store_bytes(content, system=system)
        else:
            stored = self._small.add(bytes(content))
            if self._small.size >= _APPEND_AHEAD:
                self._append_ahead()
            return stored
        self._pending.absorb(stored.pending)
        if self._pending.size >= _APPEND_AHEAD:
            append_ahead(self._database.objects, self._pending)
        return stored


def _is_path_operation(operation: Operation | SetRef) -> bool:
    return not isinstance(operation, SetRef) and not operation.system
