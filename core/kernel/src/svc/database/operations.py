"""Path operations: what a transaction may do to a tree, each checked and applied in one place.

An operation is a value; applied to a working tree it changes it, or raises and has changed nothing.
The committer applies operations in order under the commit lock, so every check sees the state that
the operation will change: compare-and-swap needs nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from msgspec import Struct

from svc.database.commit import PathChange
from svc.errors import AlreadyExists, Conflict, InvalidInput, InvalidPath, NotFound, PreconditionFailed
from svc.hashing import Hash, ObjectKind, hash_object
from svc.objects.content import StoredContent
from svc.objects.store import EMPTY_ROOT
from svc.paths import MAXIMUM_PATH_BYTES, Path, format_path, is_system_path
from svc.tree import NO_TOTALS, Entry, EntryKind, WorkingTree

__all__ = ["Condition", "Operation", "OperationResult", "Unchanged", "same_entry"]

_FILE, _DIRECTORY = EntryKind.FILE, EntryKind.DIRECTORY


class Condition(Struct, frozen=True):
    """A precondition on what stands at an operation's path (RFC 9110, section 13.1).

    Attributes:
        if_match: content hashes in hex of which one must be the present one; ``("*",)`` asks only
            that something is there; None asks nothing.
        if_none_match: content hashes of which none may be the present one; ``("*",)`` asks that
            nothing is there; None asks nothing.
        if_unmodified_since_ms: the path must not have been updated after this time.
    """

    if_match: tuple[str, ...] | None = None
    if_none_match: tuple[str, ...] | None = None
    if_unmodified_since_ms: int | None = None

    def check(self, path: Path, present: Entry | None) -> None:
        """Raises PreconditionFailed unless the condition holds for what is present."""
        if self.if_match is not None:
            if present is None or ("*" not in self.if_match and present.hash.hex() not in self.if_match):
                raise PreconditionFailed(
                    "If-Match: the path holds another state.", path=format_path(path), condition="If-Match"
                )
        elif (
            self.if_unmodified_since_ms is not None
            and present is not None
            # HTTP dates count whole seconds.
            and present.updated_ms // 1000 > self.if_unmodified_since_ms // 1000
        ):
            raise PreconditionFailed(
                "If-Unmodified-Since: the path has changed.",
                path=format_path(path),
                condition="If-Unmodified-Since",
            )
        if (
            self.if_none_match is not None
            and present is not None
            and ("*" in self.if_none_match or present.hash.hex() in self.if_none_match)
        ):
            raise PreconditionFailed(
                "If-None-Match: the path holds this state.",
                path=format_path(path),
                condition="If-None-Match",
            )


class Unchanged(Condition, frozen=True):
    """The precondition that what stands at a path is in every respect what it was when it was read.

    Of a directory only that one is there: its hash is not known while the commit changes what it holds.
    """

    entry: Entry | None = None

    def check(self, path: Path, present: Entry | None) -> None:
        """Raises PreconditionFailed unless it is."""
        expected = self.entry
        if expected is not None and expected.kind is _DIRECTORY:
            holds = present is not None and present.kind is _DIRECTORY
        else:
            holds = present == expected
        if not holds:
            raise PreconditionFailed("The path was changed meanwhile.", path=format_path(path))


def same_entry(entry: Entry | None) -> Condition:
    """Returns the condition that an entry is still the same, times too; of a directory, that one is there.

    None was nothing. ``same_content`` asks less: the same bytes.
    """
    return Unchanged(entry=entry)


class OperationResult(Struct, frozen=True, gc=False):
    """What an operation did.

    Attributes:
        path: where; the destination of a move or copy.
        before: what stood there, or None.
        after: what stands there now, or None.
    """

    path: Path
    before: Entry | None
    after: Entry | None


class Operation(Protocol):
    """One path operation."""

    @property
    def system(self) -> bool:
        """Whether it changes the system tree."""
        ...

    def touched(self) -> tuple[Path, ...]:
        """The paths whose present state the operation replaces or moves away."""
        ...

    def change(self) -> PathChange:
        """What the commit says of the operation."""
        ...

    @property
    def path(self) -> Path:
        """Where it leaves something, or nothing."""
        ...

    def apply(self, tree: WorkingTree, now_ms: int) -> OperationResult:
        """Changes the tree, or raises and leaves it as it was."""
        ...


class Put(Struct, frozen=True, gc=False):
    """Stores a content at a path; parents appear by themselves."""

    path: Path
    content: StoredContent
    content_type: str | None
    created_ms: int | None = None
    updated_ms: int | None = None
    condition: Condition | None = None
    system: bool = False

    def touched(self) -> tuple[Path, ...]:
        return (self.path,)

    def change(self) -> PathChange:
        return PathChange("put", self.path, None, self.system)

    def entry(self, now_ms: int) -> Entry:
        """Returns the file that it puts."""
        content, created_ms, updated_ms = self.content, self.created_ms, self.updated_ms
        return Entry(
            _FILE,
            content.content_hash,
            content.size,
            now_ms if created_ms is None else created_ms,
            now_ms if updated_ms is None else updated_ms,
            self.content_type,
            content.record,
        )

    def apply(self, tree: WorkingTree, now_ms: int) -> OperationResult:
        path = self.path
        if not path:
            _refuse_root(path)
        if self.condition is not None:
            self.condition.check(path, tree.get(path))
        file = self.entry(now_ms)
        before, after = tree.put_file(path, file, keeps_creation=self.created_ms is None)
        return OperationResult(path, before, after)


class PutEntry(Struct, frozen=True, gc=False):
    """Puts an entry of another version at a path: restore, merge, import."""

    path: Path
    entry: Entry
    condition: Condition | None = None
    system: bool = False

    def touched(self) -> tuple[Path, ...]:
        return (self.path,)

    def change(self) -> PathChange:
        return PathChange("put", self.path, None, self.system)

    def apply(self, tree: WorkingTree, now_ms: int) -> OperationResult:
        _refuse_root(self.path)
        before = tree.get(self.path)
        if self.condition is not None:
            self.condition.check(self.path, before)
        if self.entry.kind is not EntryKind.DIRECTORY:
            _refuse_directory(self.path, before)
        tree.put(self.path, self.entry)
        return OperationResult(self.path, before, self.entry)


class Delete(Struct, frozen=True, gc=False):
    """Removes a file, a link or a directory."""

    path: Path
    recursive: bool = False
    condition: Condition | None = None
    system: bool = False

    def touched(self) -> tuple[Path, ...]:
        return (self.path,)

    def change(self) -> PathChange:
        return PathChange("delete", self.path, None, self.system)

    def apply(self, tree: WorkingTree, now_ms: int) -> OperationResult:
        _refuse_root(self.path)
        before = _require(tree, self.path)
        if self.condition is not None:
            self.condition.check(self.path, before)
        if before.kind is EntryKind.DIRECTORY and not self.recursive and not tree.is_empty(self.path):
            raise Conflict(
                "The directory is not empty; delete it with recursive=true.",
                path=format_path(self.path),
                parameter="recursive",
            )
        tree.remove(self.path)
        return OperationResult(self.path, before, None)


class Relocate(Struct, frozen=True, gc=False):
    """Moves or copies whatever stands at a path, with everything below; costs no data."""

    source: Path
    path: Path
    keep_source: bool
    overwrite: bool = False
    condition: Condition | None = None
    expected: Hash | None = None
    """The content of the file that was checked for the new path."""
    takes_directories: bool = True
    system: ClassVar[bool] = False

    def touched(self) -> tuple[Path, ...]:
        return (self.source, self.path)

    def change(self) -> PathChange:
        return PathChange("copy" if self.keep_source else "move", self.path, self.source)

    def apply(self, tree: WorkingTree, now_ms: int) -> OperationResult:
        _refuse_root(self.source)
        _refuse_root(self.path)
        moved = _require(tree, self.source)
        if self.condition is not None:
            self.condition.check(self.source, moved)
        if self.expected is not None and moved.hash != self.expected:
            raise Conflict(
                "The file was changed while it was checked; try again.", path=format_path(self.source)
            )
        if moved.kind is EntryKind.DIRECTORY and not self.takes_directories:
            raise Conflict(
                "There is a directory now, of which only a file or a link was expected.",
                path=format_path(self.source),
            )
        if self.source == self.path:
            raise Conflict("Source and destination are the same.", path=format_path(self.path))
        if self.path[: len(self.source)] == self.source:
            raise Conflict("A directory cannot go into itself.", path=format_path(self.path))
        if self.source[: len(self.path)] == self.path:
            raise Conflict(
                "The destination is a directory that holds the source.", path=format_path(self.path)
            )
        before = tree.get(self.path)
        if before is not None:
            if not self.overwrite:
                raise AlreadyExists("Something stands at the destination.", path=format_path(self.path))
            _refuse_directory(self.path, before)
            tree.remove(self.path)
        if self.keep_source:
            tree.copy(self.source, self.path)
        else:
            tree.move(self.source, self.path)
        return OperationResult(self.path, before, moved)


class Link(Struct, frozen=True, gc=False):
    """Makes or replaces a symbolic link."""

    path: Path
    target: str
    created_ms: int | None = None
    updated_ms: int | None = None
    condition: Condition | None = None
    system: bool = False

    def touched(self) -> tuple[Path, ...]:
        return (self.path,)

    def change(self) -> PathChange:
        return PathChange("link", self.path, None, self.system)

    def apply(self, tree: WorkingTree, now_ms: int) -> OperationResult:
        _refuse_root(self.path)
        before = tree.get(self.path)
        if self.condition is not None:
            self.condition.check(self.path, before)
        if before is not None and before.kind is not EntryKind.SYMLINK:
            raise Conflict("Something that is not a link stands at this path.", path=format_path(self.path))
        target = self.target.encode()
        created_ms = self.created_ms
        if created_ms is None:
            created_ms = before.created_ms if before is not None else now_ms
        after = Entry(
            EntryKind.SYMLINK,
            hash_object(ObjectKind.CHUNK, target),
            len(target),
            created_ms,
            self.updated_ms if self.updated_ms is not None else now_ms,
            target=self.target,
        )
        tree.put(self.path, after)
        return OperationResult(self.path, before, after)


class MakeDirectory(Struct, frozen=True, gc=False):
    """Makes an empty directory, and its parents."""

    path: Path
    exist_ok: bool = False
    at_ms: int | None = None
    system: ClassVar[bool] = False

    def touched(self) -> tuple[Path, ...]:
        return (self.path,)

    def change(self) -> PathChange:
        return PathChange("mkdir", self.path)

    def apply(self, tree: WorkingTree, now_ms: int) -> OperationResult:
        before = tree.get(self.path)
        if before is not None:
            if self.exist_ok and before.kind is EntryKind.DIRECTORY:
                return OperationResult(self.path, before, before)
            raise AlreadyExists("Something stands at this path.", path=format_path(self.path))
        _refuse_root(self.path)
        at_ms = self.at_ms if self.at_ms is not None else now_ms
        after = Entry(EntryKind.DIRECTORY, EMPTY_ROOT, 0, at_ms, at_ms, totals=NO_TOTALS)
        tree.put(self.path, after)
        return OperationResult(self.path, None, after)


class SetRef(Struct, frozen=True):
    """Moves HEAD or a named ref to a root, makes a named ref, or removes one (``root`` is None).

    ``expected`` is the root it must have now; the empty bytes ask that it does not exist; None asks nothing.
    ``source`` is another ref, whose root at this moment is taken instead of ``root``.
    """

    name: str
    root: Hash | None
    expected: Hash | None = None
    source: str | None = None

    def change(self) -> PathChange:
        return PathChange("ref", tuple(self.name.split("/")))

    def check(self, present: Hash | None) -> None:
        """Raises unless the ref's present root is the expected one."""
        if self.expected == b"" and present is not None:
            raise AlreadyExists("The name is taken.", name=self.name)
        if self.root is None and self.source is None and present is None:
            raise NotFound("There is no ref of this name.", name=self.name)
        if self.expected and present != self.expected:
            raise PreconditionFailed("The ref has moved.", name=self.name)


def is_plain_put(operation: Operation | SetRef) -> bool:
    """Whether an operation puts a file into the user tree, whatever stands there."""
    return type(operation) is Put and operation.condition is None and not operation.system


def put_all(puts: Sequence[Put], tree: WorkingTree, now_ms: int) -> list[OperationResult] | None:
    """Applies many plain puts at once; None, and nothing has changed, where it is to be one by one."""
    paths = [put.path for put in puts]
    if not all(paths):
        return None
    files = [put.entry(now_ms) for put in puts]
    before = tree.put_files(paths, files, [put.created_ms is None for put in puts])
    return None if before is None else list(map(OperationResult, paths, before, files))


def growth_of(operation: Operation, tree: WorkingTree) -> int:
    """Returns how many entries an operation added at most; a move adds only directories on the way."""
    if isinstance(operation, Relocate):
        return (tree.count(operation.path) if operation.keep_source else 0) + len(operation.path)
    if isinstance(operation, PutEntry) and operation.entry.kind is _DIRECTORY:
        return tree.count(operation.path) + len(operation.path)
    return 0 if isinstance(operation, Delete) else len(operation.path)


def refuse_system_path(path: Path) -> None:
    """Raises NotFound for a path in the system namespace: to users it does not exist."""
    if is_system_path(path):
        raise NotFound("Nothing is at this path.", path=format_path(path))


def check_link_target(target: str) -> None:
    """Raises InvalidInput unless a link's target is an absolute path of at most 4,096 bytes."""
    if not target.startswith("/") or "\0" in target:
        raise InvalidInput("A link's target must be an absolute path.", field="target")
    try:
        size = len(target.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput("A link's target must be valid Unicode text.", field="target") from error
    if size > MAXIMUM_PATH_BYTES:
        raise InvalidInput(
            f"A link's target has at most {MAXIMUM_PATH_BYTES} bytes.",
            field="target",
            limit=MAXIMUM_PATH_BYTES,
        )


def _refuse_root(path: Path) -> None:
    if not path:
        raise InvalidPath("The root directory itself cannot be replaced, moved or deleted.", path="/")


def _refuse_directory(path: Path, present: Entry | None) -> None:
    if present is not None and present.kind is _DIRECTORY:
        raise Conflict("A directory stands at this path.", path=format_path(path))


def _require(tree: WorkingTree, path: Path) -> Entry:
    entry = tree.get(path)
    if entry is None:
        raise NotFound("Nothing is at this path.", path=format_path(path))
    return entry
