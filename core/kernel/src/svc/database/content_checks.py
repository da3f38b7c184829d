"""Checks of contents before they are stored: a file that must be of some form at its path is refused else.

They run before the commit, in whoever commits, and see one file each. What comes with a directory that is
moved, copied or put as a whole, and what an import brings, is not looked at: whoever reads such a file must
be ready for a bad one all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from svc.database.operations import Delete, MakeDirectory, Operation, Put, PutEntry, Relocate, SetRef
from svc.database.references import HEAD_NAME, reference_path
from svc.errors import InvalidInput, SvcError
from svc.objects.content import SmallContents, StoredContent, read_content, read_range
from svc.objects.store import PendingObjects
from svc.paths import Path, format_path
from svc.tree import Entry, EntryKind

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["CheckedContents", "ContentChecks", "PathCheck"]


class PathCheck(Struct, frozen=True):
    """A check of the files whose paths end with ``suffix``; more than ``maximum_size`` bytes are refused.

    ``check`` gets path and content, and raises InvalidInput, or another ``SvcError``, to refuse the file.
    """

    suffix: Path
    maximum_size: int
    check: Callable[[Path, bytes], None]


class ContentChecks:
    """Checks by the names of files. Immutable; for nearly all paths the answer is one look."""

    __slots__ = ("_by_name",)

    def __init__(self, checks: Iterable[PathCheck] = ()) -> None:
        self._by_name: dict[str, list[PathCheck]] = {}
        for check in checks:
            self._by_name.setdefault(check.suffix[-1], []).append(check)

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def of(self, path: Path) -> Sequence[PathCheck]:
        """The checks of a path."""
        if not path:
            return ()
        return [one for one in self._by_name.get(path[-1], ()) if path[-len(one.suffix) :] == one.suffix]


class CheckedContents:
    """The contents that the operations of one transaction put where checks are.

    A move or copy that was checked is replaced in ``operations`` by one that moves this very content.
    Contents of the transaction wait in ``small``, its other new objects in ``pending``.
    """

    def __init__(
        self,
        database: Database,
        ref: str,
        operations: list[Operation | SetRef],
        small: SmallContents,
        pending: PendingObjects,
    ) -> None:
        self._database = database
        self._ref = ref
        self._operations = operations
        self._small = small
        self._pending = pending

    def check(self, checks: ContentChecks) -> None:
        """Calls the checks; blocks as they do. A refusal has the file's ``path`` and ``operation`` number."""
        for number, operation in enumerate(self._operations):
            if isinstance(operation, SetRef | Delete) or operation.system:
                continue
            found = checks.of(operation.path)
            if found:
                self._check_operation(number, operation, found)

    def _check_operation(self, number: int, operation: Operation, checks: Sequence[PathCheck]) -> None:
        content: StoredContent | Entry | None = None
        if isinstance(operation, Put):
            content = operation.content
        elif isinstance(operation, PutEntry):
            content = operation.entry
        elif isinstance(operation, Relocate):
            content = self._content_at(operation.source, number)
            if content is not None:
                hash = content.hash if isinstance(content, Entry) else content.content_hash
                self._operations[number] = msgspec.structs.replace(operation, expected=hash)
        if content is None or (isinstance(content, Entry) and content.kind is not EntryKind.FILE):
            return
        path = operation.path
        try:
            for check in checks:
                if content.size > check.maximum_size:
                    raise InvalidInput(
                        f"The file has {content.size:,} bytes, and at this path at most "
                        f"{check.maximum_size:,} are taken.",
                        limit=check.maximum_size,
                    )
                check.check(path, self._bytes_of(content))
        except SvcError as error:
            error.details.setdefault("path", format_path(path))
            error.details.setdefault("operation", number)
            raise

    def _bytes_of(self, content: StoredContent | Entry) -> bytes:
        objects = self._database.objects
        if isinstance(content, Entry):
            return b"".join(read_range(objects, content))
        waiting = self._small.get(content.content_hash)
        return read_content(objects, content, self._pending) if waiting is None else waiting

    def _content_at(self, path: Path, number: int) -> StoredContent | Entry | None:
        """The content at a path before an operation, left by an earlier one or by an earlier commit."""
        for operation in reversed(self._operations[:number]):
            if isinstance(operation, SetRef):
                if operation.name == self._ref and operation.root is not None:
                    return self._database.version_of(operation.root).get(path)
                continue
            at = operation.path
            if operation.system or isinstance(operation, MakeDirectory):
                continue
            if isinstance(operation, Relocate):
                if path[: len(at)] == at:
                    path = operation.source + path[len(at) :]
                elif not operation.keep_source and path[: len(operation.source)] == operation.source:
                    return None
            elif path[: len(at)] == at:
                return self._left_by(operation, path)
        root = self._database.head().root
        if self._ref != HEAD_NAME:
            entry = self._database.system().get(reference_path(self._ref))
            if entry is None:
                return None
            root = entry.hash
        return self._database.version_of(root).get(path)

    def _left_by(self, operation: Operation, path: Path) -> StoredContent | Entry | None:
        """The content that an operation, not a move, leaves at its path or at one below it."""
        if isinstance(operation, PutEntry):
            entry, below = operation.entry, path[len(operation.path) :]
            if not below:
                return entry
            is_directory = entry.kind is EntryKind.DIRECTORY
            return self._database.version_of(entry.hash).get(below) if is_directory else None
        return operation.content if isinstance(operation, Put) and operation.path == path else None
