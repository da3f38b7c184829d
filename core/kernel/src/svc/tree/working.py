"""A tree that is being changed: pending edits over a base, taken back or written as a whole.

Nothing is written until ``write``, which makes one edit of each changed directory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from heapq import merge as merge_sorted
from itertools import repeat
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from svc.errors import AlreadyExists, Conflict, CorruptRecord, InvalidInput, NotFound
from svc.hashing import HASH_SIZE, Hash
from svc.paths import Path, format_path
from svc.tree.edit import build, edit
from svc.tree.entry import NO_TOTALS, Entry, EntryKind, entries_of
from svc.tree.read import directory_entry, entries, lookup, lookup_many, resolve, totals
from svc.tree.store import NodeStore

__all__ = ["UNWRITTEN", "Savepoint", "WorkingTree"]

UNWRITTEN: Hash = bytes(HASH_SIZE)
"""The hash that a directory with pending changes shows until it is written."""

_FILE, _DIRECTORY = EntryKind.FILE, EntryKind.DIRECTORY
_ABSENT: Any = object()
_ROOT = ""


class Savepoint(Struct, frozen=True):
    """A state to which a working tree can go back, until its next write."""

    generation: int
    position: int
    last: object


class _Directory:
    """A directory with pending changes: entries and directories by name; None removes.

    ``base`` is None for one that was made here; ``own_ms`` counts while it is empty and unchanged. Whoever
    wants to change a ``shared`` one (several places hold it) takes a copy. ``counted``, only of a shared one,
    is the number of rollbacks before it was counted, and entries then.
    """

    __slots__ = ("base", "changes", "counted", "own_ms", "shared")

    def __init__(self, base: Hash | None, own_ms: int, changes: dict[str, _Value]) -> None:
        self.base = base
        self.own_ms = own_ms
        self.changes = changes
        self.shared = False
        self.counted: tuple[int, int] | None = None


_Value = Entry | _Directory | None


class WorkingTree:
    """A tree with pending changes, kept in memory. Not thread safe; one transaction owns it.

    Moving or copying a directory costs nothing, however much it holds, and changes made later in a copy do
    not show in the source. A directory that loses its last entry stays, empty; its time is that of the write.

    A subtree may belong to another store, as the user's tree inside the system tree: ``store_of`` names the
    store that writes the nodes of the directory at a path. It must answer every path, and the same for all
    paths below such a subtree's root. A directory moves or is copied only within one store.
    """

    def __init__(
        self, store: NodeStore, root: Hash, store_of: Callable[[Path], NodeStore] | None = None
    ) -> None:
        self._store = store
        self._store_of = store_of or (lambda _: store)
        self._top: dict[str, _Value] = {_ROOT: _Directory(root, 0, {})}
        self._journal: list[tuple[dict[str, _Value], str, Any]] = []
        self._generation = 0
        self._rollbacks = 0
        # Directories that stand open for changes, by path, until a directory is moved, copied or replaced.
        self._opened: dict[Path, _Directory] = {}

    def get(self, path: Path) -> Entry | None:
        """Returns the entry at a path, or None; links are not followed.

        A directory with pending changes shows the hash ``UNWRITTEN`` and no size, times or totals.
        """
        value = self._find(path)
        return value if value is None or type(value) is Entry else self._shown(value)

    def children(self, path: Path = ()) -> Iterator[tuple[str, Entry]]:
        """Yields names and entries of a directory as they are now, in order of names; nothing where none is.

        Changes made while the iterator is in use do not show in it.
        """
        for name, value in self._children(self._find(path)):
            shown = self._shown(value)
            if shown is not None:
                yield name, shown

    def walk(self, path: Path = ()) -> Iterator[tuple[Path, Entry]]:
        """Yields everything below a path as it is now, depth first, as ``svc.tree.walk`` does."""
        stack = [(path, self._children(self._find(path)))]
        while stack:
            prefix, remaining = stack[-1]
            for name, value in remaining:
                here = (*prefix, name)
                shown = self._shown(value)
                if shown is None:
                    continue
                yield here, shown
                if shown.kind is EntryKind.DIRECTORY:
                    stack.append((here, self._children(value)))
                    break
            else:
                stack.pop()

    def is_empty(self, path: Path) -> bool:
        """Whether the directory at a path holds nothing."""
        value = self._find(path)
        if value is None:
            raise NotFound("Nothing is at this path.", path=format_path(path))
        if not _is_directory(value):
            raise Conflict("This is not a directory.", path=format_path(path))
        return next(self._children(value), None) is None

    def count(self, path: Path = ()) -> int:
        """Returns how many entries stand at and below a path now, the root itself not counted.

        Looks at each pending change there once, however often it was copied; what is written is not walked.
        """
        value = self._find(path)
        return 0 if value is None else self._count(value) - (not path)

    def put(self, path: Path, entry: Entry) -> None:
        """Puts an entry at a path, in place of what is there; makes the directories above it.

        A directory's entry brings all that the directory holds, and replaces all that a directory at the path
        held. The empty path takes a directory only: the new root.

        Raises Conflict where a file or link stands where a directory is needed, or the reverse; InvalidInput
        for an entry that ``get`` showed of a directory not written yet.
        """
        if entry.hash == UNWRITTEN and entry.kind is _DIRECTORY:
            raise InvalidInput("This directory is not written yet: copy it instead.", path=format_path(path))
        if not path:
            if entry.kind is not EntryKind.DIRECTORY:
                raise Conflict("The root is a directory.", path="/")
            self._opened.clear()
            self._set(self._top, _ROOT, _Directory(entry.hash, entry.created_ms, {}))
            return
        parent = self._open(path[:-1])
        name = path[-1]
        existing = self._child(parent, name)
        is_directory = entry.kind is _DIRECTORY
        if existing is not None and _is_directory(existing) != is_directory:
            what = "directory" if _is_directory(existing) else "file or link"
            raise Conflict(f"A {what} stands at this path.", path=format_path(path))
        if is_directory:
            self._opened.clear()
        changes = parent.changes
        self._journal.append((changes, name, changes.get(name, _ABSENT)))
        changes[name] = entry

    def put_file(self, path: Path, entry: Entry, *, keeps_creation: bool) -> tuple[Entry | None, Entry]:
        """Puts a file, not at the root, as ``put`` does; returns what stood there, and what stands now.

        With ``keeps_creation`` it has the creation time of the file that stands there, if one does.
        """
        parent = path[:-1]
        directory = self._opened.get(parent)
        if directory is None:
            directory = self._open(parent)
        changes, name = directory.changes, path[-1]
        pending = changes.get(name, _ABSENT)
        before = self._of_base(directory.base, name) if pending is _ABSENT else pending
        if before is not None:
            if _is_directory(before):
                raise Conflict("A directory stands at this path.", path=format_path(path))
            if keeps_creation and before.kind is _FILE:
                entry = replace(entry, created_ms=before.created_ms)
        self._journal.append((changes, name, pending))
        changes[name] = entry
        return before, entry

    def put_files(
        self, paths: Sequence[Path], files: list[Entry], keeps_creation: Sequence[bool]
    ) -> list[Entry | None] | None:
        """Puts many files, as ``put_file`` does with each: directory by directory, which costs less.

        Returns what stood at each path, and ``files`` then has what stands there now. None, with the tree as
        it was, where they are to be put one by one: a path is refused, was changed before, or stands twice or
        above another.
        """
        savepoint = self.savepoint()
        by_directory: defaultdict[Path, list[int]] = defaultdict(list)
        for at, path in enumerate(paths):
            by_directory[path[:-1]].append(at)
        before: list[Entry | None] = [None] * len(paths)
        with suppress(Conflict, CorruptRecord):
            for parent, places in by_directory.items():
                directory = self._open(parent)
                names = {paths[at][-1]: at for at in places}
                if len(names) < len(places) or not directory.changes.keys().isdisjoint(names):
                    raise Conflict("This path was changed before.")
                if directory.base is not None:
                    for name, there in lookup_many(self._store, directory.base, sorted(names)):
                        at = names[name]
                        before[at] = there
                        if there.kind is _DIRECTORY:
                            raise Conflict("A directory stands at this path.")
                        if keeps_creation[at] and there.kind is _FILE:
                            files[at] = replace(files[at], created_ms=there.created_ms)
                self._journal += zip(repeat(directory.changes), names, repeat(_ABSENT))
                directory.changes.update(zip(names, [files[at] for at in places], strict=True))
            return before
        self.rollback(savepoint)
        return None

    def remove(self, path: Path) -> None:
        """Removes what is at a path, and all that it holds; raises NotFound, and Conflict for the root."""
        value = self._require_removable(path)
        parent = self._open(path[:-1])
        if _is_directory(value):
            self._opened.clear()
        self._set(parent.changes, path[-1], None)

    def move(self, source: Path, destination: Path) -> None:
        """Moves what is at a path to another, where nothing may be; makes the directories above it.

        Raises NotFound, AlreadyExists; Conflict for the root, a directory into itself, or a file or link
        above the destination; InvalidInput for a directory of one store into another.
        """
        value = self._require_removable(source)
        if source == destination:
            return
        if destination[: len(source)] == source and _is_directory(value):
            raise Conflict("A directory cannot be moved into itself.", path=format_path(destination))
        self._require_free(value, source, destination)
        target = self._open(destination[:-1])
        origin = self._open(source[:-1])
        self._opened.clear()
        self._set(target.changes, destination[-1], self._child(origin, source[-1]))
        self._set(origin.changes, source[-1], None)

    def copy(self, source: Path, destination: Path) -> None:
        """Copies what is at a path to another, where nothing may be; makes the directories above it.

        A directory may be copied into itself: the copy holds what was there before. Raises as ``move``.
        """
        value = self._find(source)
        if value is None:
            raise NotFound("Nothing is at this path.", path=format_path(source))
        self._require_free(value, source, destination)
        if isinstance(value, _Directory):
            value.shared = True
        self._opened.clear()
        self._set(self._open(destination[:-1]).changes, destination[-1], value)

    def savepoint(self) -> Savepoint:
        """Returns the present state, to go back to before the next write. Costs nothing."""
        return Savepoint(self._generation, len(self._journal), self._journal[-1] if self._journal else None)

    def rollback(self, savepoint: Savepoint) -> None:
        """Takes back all changes since a savepoint; ValueError if a write or a rollback has made it void."""
        position = savepoint.position
        known = savepoint.generation == self._generation and position <= len(self._journal)
        if not known or (position and self._journal[position - 1] is not savepoint.last):
            raise ValueError("The savepoint is of a state that is no more.")
        self._opened.clear()
        self._rollbacks += 1
        while len(self._journal) > position:
            mapping, name, old = self._journal.pop()
            if old is _ABSENT:
                del mapping[name]
            else:
                mapping[name] = old

    def write(self, now_ms: int) -> Hash:
        """Writes all pending changes and returns the new root; the same one when nothing changed.

        The tree then stands on it and takes further changes; if the store fails, all are still pending.
        """
        root = self._open(())
        new = self._write_directories(root, now_ms) if self._journal or root.base is None else root.base
        self._opened.clear()
        self._top = {_ROOT: _Directory(new, 0, {})}
        self._journal = []
        self._generation += 1
        return new

    def _write_directories(self, root: _Directory, now_ms: int) -> Hash:
        written: dict[int, Entry] = {}
        stack: list[tuple[Path, _Directory, bool]] = [((), root, False)]
        while stack:
            path, directory, ready = stack.pop()
            if id(directory) in written:
                continue
            below = [(name, value) for name, value in directory.changes.items() if type(value) is _Directory]
            if below and not ready:
                stack.append((path, directory, True))
                stack.extend([((*path, name), value, False) for name, value in below])
                continue
            done = {name: written[id(value)] for name, value in below}
            written[id(directory)] = self._flush(self._store_of(path), directory, done, now_ms)
        return written[id(root)].hash

    def _flush(self, store: NodeStore, directory: _Directory, done: dict[str, Entry], now_ms: int) -> Entry:
        changes: dict[str, Any] = dict(directory.changes)
        changes.update(done)
        if directory.base is None:
            present = [(name, entry) for name, entry in changes.items() if entry is not None]
            root = build(store, sorted(present, key=itemgetter(0)))
        else:
            root = edit(store, directory.base, changes)
        return directory_entry(store, root, directory.own_ms if root == directory.base else now_ms)

    def _count(self, value: Entry | _Directory) -> int:
        if isinstance(value, Entry):
            return entries_of(value)
        counted: dict[int, int] = {}
        stack = [value]
        while stack:
            directory = stack[-1]
            known = directory.counted
            if known is not None and known[0] == self._rollbacks:
                counted[id(directory)] = known[1]
            if id(directory) in counted:
                stack.pop()
                continue
            below = [one for one in directory.changes.values() if isinstance(one, _Directory)]
            waiting = [one for one in below if id(one) not in counted]
            if waiting:
                stack.extend(waiting)
                continue
            count = self._count_changed(directory) + sum(counted[id(one)] for one in below)
            counted[id(directory)] = count
            if directory.shared:  # nobody changes it any more
                directory.counted = self._rollbacks, count
        return counted[id(value)]

    def _count_changed(self, directory: _Directory) -> int:
        """How many entries a directory stands for, itself counted, without its pending subdirectories."""
        changes = directory.changes
        count = 1 + sum(entries_of(one) for one in changes.values() if isinstance(one, Entry))
        if directory.base is not None:
            below = totals(self._store, directory.base)
            count += below.files + below.directories + below.symlinks
            if changes:
                replaced = lookup_many(self._store, directory.base, sorted(changes))
                count -= sum(entries_of(entry) for _, entry in replaced)
        return count

    def _find(self, path: Path) -> _Value:
        parent = self._opened.get(path[:-1]) if path else None
        if parent is not None:
            return self._child(parent, path[-1])
        value = self._top[_ROOT]
        for depth, name in enumerate(path):
            if isinstance(value, _Directory):
                value = self._child(value, name)
            elif value is not None and value.kind is EntryKind.DIRECTORY:
                return resolve(self._store, value.hash, path[depth:])
            else:
                return None
        return value

    def _child(self, directory: _Directory, name: str) -> _Value:
        value = directory.changes.get(name, _ABSENT)
        return self._of_base(directory.base, name) if value is _ABSENT else value

    def _of_base(self, base: Hash | None, name: str) -> Entry | None:
        return None if base is None else lookup(self._store, base, name)

    def _children(self, value: _Value) -> Iterator[tuple[str, _Value]]:
        if value is None or not _is_directory(value):
            return iter(())
        if isinstance(value, Entry):
            return entries(self._store, value.hash)
        changes = dict(value.changes)
        pending = sorted([item for item in changes.items() if item[1] is not None], key=itemgetter(0))
        if value.base is None:
            return iter(pending)
        kept = (item for item in entries(self._store, value.base) if item[0] not in changes)
        return merge_sorted(kept, pending, key=itemgetter(0)) if pending else kept

    def _shown(self, value: _Value) -> Entry | None:
        if not isinstance(value, _Directory):
            return value
        if value.base is not None and not value.changes:
            return directory_entry(self._store, value.base, value.own_ms)
        return Entry(EntryKind.DIRECTORY, UNWRITTEN, 0, 0, 0, totals=NO_TOTALS)

    def _open(self, path: Path) -> _Directory:
        """Returns the directory at a path, ready to be changed; makes it and those above if need be."""
        opened = self._opened.get(path)
        if opened is not None:
            return opened
        holder, name = self._top, _ROOT
        value: _Value = holder[name]
        depth = 0
        while True:
            if isinstance(value, _Directory) and not value.shared:
                directory = value
            else:
                directory = _own(value, path[:depth])
                self._set(holder, name, directory)
            if depth == len(path):
                self._opened[path] = directory
                return directory
            holder, name = directory.changes, path[depth]
            value = self._child(directory, name)
            depth += 1

    def _set(self, mapping: dict[str, _Value], name: str, value: _Value) -> None:
        self._journal.append((mapping, name, mapping.get(name, _ABSENT)))
        mapping[name] = value

    def _require_removable(self, path: Path) -> Entry | _Directory:
        if not path:
            raise Conflict("The root cannot be moved or removed.", path="/")
        value = self._find(path)
        if value is None:
            raise NotFound("Nothing is at this path.", path=format_path(path))
        return value

    def _require_free(self, value: Entry | _Directory, source: Path, destination: Path) -> None:
        if self._find(destination) is not None:
            raise AlreadyExists("Something is at the destination already.", path=format_path(destination))
        if _is_directory(value) and self._store_of(source) is not self._store_of(destination):
            raise InvalidInput(
                "A directory cannot leave the tree it belongs to.", path=format_path(destination)
            )


def _is_directory(value: Entry | _Directory) -> bool:
    return isinstance(value, _Directory) or value.kind is _DIRECTORY


def _own(value: _Value, path: Path) -> _Directory:
    if value is None:
        return _Directory(None, 0, {})
    if isinstance(value, Entry):
        if value.kind is not EntryKind.DIRECTORY:
            raise Conflict("A file or link stands where a directory is needed.", path=format_path(path))
        return _Directory(value.hash, value.created_ms, {})
    for child in value.changes.values():
        if isinstance(child, _Directory):
            child.shared = True
    return _Directory(value.base, value.own_ms, dict(value.changes))
