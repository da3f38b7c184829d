"""The view of chunks: at which paths a file may stand that holds one.

For every file that is put, on HEAD or on a fork, a row of each of its chunks names the path; such rows are
never removed. A directory that is moved or copied is one row, from where to where. The rows lead to every
path at which a file holds the chunk, and to others: whoever asks looks what stands there at HEAD.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from heapq import heappop, heappush
from itertools import islice

from blake3 import blake3
from msgspec import Struct

from svc.plugin import (
    HASH_SIZE,
    Commit,
    Entry,
    EntryKind,
    Hash,
    Path,
    PathChange,
    TransactionRecord,
    Version,
    View,
    ViewStorage,
)
from svc_files.deleted_events import path_key, path_of_key

__all__ = ["CHUNKS_VIEW", "MAXIMUM_CANDIDATES", "ChunkHoldersView", "candidates"]

CHUNKS_VIEW = "files.chunks"
MAXIMUM_CANDIDATES = 10_000

_CHUNK, _COPY, _GONE, _FORK, _ROOT = b"c", b"e", b"g", b"f", b"r"
_PER_STEP = 512
_MOST_LOOKS = 50_000
_MOST_KNOWN = 50_000
_WORTH_KNOWING = 8
_WORTH_COMPARING = 8
_SMALL = 1000
_HEAD = "HEAD"
_FILE, _DIRECTORY = EntryKind.FILE, EntryKind.DIRECTORY


class ChunkHoldersView(View):
    """Follows the commit feed and keeps by which paths a chunk may be found."""

    name = CHUNKS_VIEW
    format = 3

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> Generator[None]:
        """Takes one commit in, a bounded number of entries a step."""
        recorder = _Recorder(storage, commit.sequence, start)
        forks: dict[str, Hash] = {}
        if commit.root != commit.parent_root:
            yield from _Comparison(recorder, before, before, _changes(commit, _HEAD)).run(commit.root)
        for record in commit.transactions:
            if record.root is not None and record.ref not in forks:
                forks[record.ref] = record.root
                base = before.sibling(recorder.fork_root(record.ref) or commit.parent_root)
                yield from _Comparison(recorder, before, base, _changes(commit, record.ref)).run(record.root)
        # What the steps of this commit depend on changes at its end only.
        recorder.finish([commit.root, *forks.values()], forks)


def candidates(storage: ViewStorage, chunk: Hash) -> Iterator[Path]:
    """Yields paths at which a file may stand that holds a chunk; at most ``MAXIMUM_CANDIDATES``.

    Every such file is among them unless there are more. First come the paths at which it was put itself.
    """
    return islice(_reached(storage, chunk), MAXIMUM_CANDIDATES)


def _reached(storage: ViewStorage, chunk: Hash) -> Iterator[Path]:
    """Yields the paths of a chunk's rows, and those to which moves and copies lead from there."""
    since: dict[Path, int] = {}
    waiting: list[tuple[int, Path]] = []
    for key, _ in storage.scan(_CHUNK + chunk):
        sequence, path = int.from_bytes(key[-8:], "big"), path_of_key(key[1 + HASH_SIZE : -8])
        is_new = path not in since
        if is_new or sequence < since[path]:
            since[path] = sequence
            heappush(waiting, (sequence, path))
        if is_new:
            yield path
    # What was at a path moves on with later commits only, so the earliest ways are followed first.
    looks = 0
    while waiting and looks < _MOST_LOOKS:
        sequence, path = heappop(waiting)
        if since[path] < sequence:
            continue
        looks += len(path)
        for later, place in _copies_of(storage, path, sequence):
            is_new = place not in since
            if is_new or later < since[place]:
                since[place] = later
                heappush(waiting, (later, place))
            if is_new:
                yield place


def _copies_of(storage: ViewStorage, path: Path, since: int) -> Iterator[tuple[int, Path]]:
    key = b""
    for length, name in enumerate(path, 1):
        key += path_key((name,))
        prefix = _COPY + blake3(key).digest(16)
        for found, value in storage.scan(prefix, after=prefix + since.to_bytes(8, "big")):
            sequence = int.from_bytes(found[len(prefix) : len(prefix) + 8], "big")
            yield sequence, path_of_key(value) + path[length:]


class _Recorder:
    def __init__(self, storage: ViewStorage, sequence: int, start: int) -> None:
        self.storage = storage
        self._sequence = sequence.to_bytes(8, "big")
        self._left_out = start * _PER_STEP
        self._looked_at = 0
        self._gone: dict[Path, Hash] = {}

    def look(self) -> bool:
        """Counts one more entry or chunk; returns whether a step is done that was not done before."""
        self._looked_at += 1
        return self._looked_at % _PER_STEP == 0 and self._looked_at > self._left_out

    @property
    def _writes(self) -> bool:
        return self._looked_at >= self._left_out

    def add_chunk(self, chunk: Hash, ending: bytes) -> None:
        if self._writes:
            self.storage.put(_CHUNK + chunk + ending + self._sequence, b"")

    def add_copy(self, source: Path, place: Path) -> None:
        if self._writes and source != place:
            key = path_key(place)
            self.storage.put(_COPY + _short(source) + self._sequence + blake3(key).digest(16), key)

    def add_gone(self, path: Path, tree: Hash) -> None:
        self._gone[path] = tree

    def gone_from(self, path: Path) -> Hash | None:
        """A tree that stood at a path, to all files of which rows lead; None when none is known or left."""
        return self._left(self.storage.get(_GONE + _short(path)))

    def fork_root(self, ref: str) -> Hash | None:
        """The root of a fork to all files of which rows lead; None when none is known or left."""
        return self._left(self.storage.get(_fork_key(ref)))

    def _left(self, value: bytes | None) -> Hash | None:
        """The tree of a value, unless it may have been collected since the commit that stands behind it."""
        if value is None or int.from_bytes(value[HASH_SIZE:], "big") <= self.storage.horizon:
            return None
        return value[:HASH_SIZE]

    def is_known_root(self, root: Hash) -> bool:
        return self.storage.get(_ROOT + root[:16]) is not None

    def finish(self, roots: list[Hash], forks: dict[str, Hash]) -> None:
        for path, tree in self._gone.items():
            self.storage.put(_GONE + _short(path), tree + self._sequence)
        for root in roots:
            self.storage.put(_ROOT + root[:16], b"")
        for ref, root in forks.items():
            self.storage.put(_fork_key(ref), root + self._sequence)


class _Level(Struct):
    """A directory that is compared; ``base`` is where the rows lead to its old state, None for nothing."""

    path: Path
    base: Path | None
    differences: Iterator[tuple[str, Entry | None, Entry | None]]


class _Comparison:
    """Finds what a tree holds that rows do not lead to yet, by its distinct parts.

    ``before`` is HEAD before the commit: copies and moves began there, or in the tree that is changed. Rows
    lead to all files of ``base``; ``changes`` made the new tree of it.
    """

    def __init__(
        self, recorder: _Recorder, before: Version, base: Version, changes: list[PathChange]
    ) -> None:
        self._recorder = recorder
        self._base = base
        self._versions = before
        self._origins = _origins(changes)
        # Trees to which rows lead, and one place of each.
        self._known: dict[Hash, Path] = {}
        for origin in dict.fromkeys(self._origins.values()):
            entry = base.get(origin)
            if entry is not None and entry.kind is _DIRECTORY:
                self._known[entry.hash] = origin

    def run(self, root: Hash) -> Generator[None]:
        if self._recorder.is_known_root(root) or root == self._base.root:
            return
        before, after = self._base.get(()), self._versions.sibling(root).get(())
        assert after is not None
        stack = [self._compare((), (), before, after)]
        while stack:
            level = stack[-1]
            for name, old, new in level.differences:
                if self._recorder.look():
                    yield
                path = (*level.path, name)
                base = None if level.base is None else (*level.base, name)
                if new is None or new.kind is not _DIRECTORY:
                    if old is not None and old.kind is _DIRECTORY and base == path:
                        self._recorder.add_gone(path, old.hash)
                    if new is not None and new.kind is _FILE:
                        yield from self._file(path, old, new)
                    continue
                below = self._directory(path, base, old, new)
                if below is not None:
                    stack.append(below)
                    break
            else:
                stack.pop()

    def _file(self, path: Path, old: Entry | None, new: Entry) -> Generator[None]:
        if old is not None and old.kind is _FILE and (old.hash, old.record) == (new.hash, new.record):
            return
        if new.record is not None:
            origin = self._origins.get(path)
            source = None if origin is None else self._base.get(origin)
            if origin is not None and source is not None and source.record == new.record:
                self._recorder.add_copy(origin, path)
                return
        ending = path_key(path)
        if new.record is None:
            if new.size:
                self._recorder.add_chunk(new.hash, ending)
            return
        for chunk, _ in self._versions.chunks(new):
            self._recorder.add_chunk(chunk, ending)
            if self._recorder.look():
                yield

    def _directory(self, path: Path, base: Path | None, old: Entry | None, new: Entry) -> _Level | None:
        """Returns what of a directory is to be compared; None when rows lead to all of it now."""
        was_directory = old is not None and old.kind is _DIRECTORY
        known = self._known.get(new.hash)
        origin = self._origins.get(path)
        source = None if origin is None else self._base.get(origin)
        is_copy = origin is not None and source is not None and source.kind is _DIRECTORY
        if old is not None and was_directory and base == path and (known is not None or is_copy):
            self._recorder.add_gone(path, old.hash)
        if known is not None:
            self._recorder.add_copy(known, path)
            return None
        if origin is not None and is_copy:
            self._recorder.add_copy(origin, path)
            return self._compare(path, origin, source, new)
        if was_directory:
            return self._compare(path, base, old, new)
        gone = self._recorder.gone_from(path)
        if gone == new.hash:
            return None
        return self._compare(path, path, None if gone is None else self._versions.sibling(gone).get(()), new)

    def _compare(self, path: Path, base: Path | None, old: Entry | None, new: Entry) -> _Level:
        """Compares two directories, unless the old one is so much larger that it is better not looked at."""
        after = self._versions.sibling(new.hash)
        if _count(new) >= _WORTH_KNOWING and len(self._known) < _MOST_KNOWN:
            self._known[new.hash] = path
        if old is None or _count(old) > _WORTH_COMPARING * max(_count(new), _SMALL):
            if old is not None and base == path:
                self._recorder.add_gone(path, old.hash)
            return _Level(path, None, ((name, None, entry) for name, entry in after.entries(())))
        return _Level(path, base, self._versions.sibling(old.hash).differences(after))


def _changes(commit: Commit, ref: str) -> list[PathChange]:
    def concerns(record: TransactionRecord) -> bool:
        return record.ref == ref

    return [change for record in commit.transactions if concerns(record) for change in record.changes]


def _origins(changes: list[PathChange]) -> dict[Path, Path]:
    """Returns where each copy or move of a commit took its source from, as it was before the commit."""
    origins: dict[Path, Path] = {}
    for change in changes:
        if change.source is not None and not change.system:
            source = change.source
            for length in range(len(source), 0, -1):
                if source[:length] in origins:
                    source = origins[source[:length]] + source[length:]
                    break
            origins[change.path] = source
    return origins


def _count(directory: Entry) -> int:
    below = directory.totals
    return 0 if below is None else below.files + below.directories + below.symlinks


def _short(path: Path) -> bytes:
    """A hash in the place of the path, so that keys of any path are short."""
    return blake3(path_key(path)).digest(16)


def _fork_key(ref: str) -> bytes:
    return _FORK + ref.encode("utf-8")
