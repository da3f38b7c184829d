"""From this machine to the server: each write only in the place of what is known to be there.

What the server has is noted when it tells, not when it was written: by then it may be another's already.

Small files go many in a commit. A file is sent as it was hashed: one that changes meanwhile is not stored
half old and half new.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct

from svc.errors import (
    Conflict,
    Forbidden,
    InsufficientStorage,
    NotFound,
    PreconditionFailed,
    ServiceUnavailable,
    SvcError,
)
from svc_files.api import (
    AnyOperation,
    DeleteOperation,
    MakeDirectoryOperation,
    MoveOperation,
    PutOperation,
)
from svc_mirror.client.fetching import base_of
from svc_mirror.client.local_tree import Left, LocalTree, hash_of
from svc_mirror.client.report import Report
from svc_mirror.client.server import Server
from svc_mirror.client.state import State
from svc_mirror.client.values import Base, Kind, Remote, Seen

__all__ = ["Storer"]

_SMALL = 512 * 1024
_GROUP_FILES = 500
_GROUP_BYTES = 4 << 20
_PIECE = 1 << 20
_LATEST_MS = 253_402_300_799_999
_STALE = (Conflict, NotFound, PreconditionFailed)
_ENDS = (InsufficientStorage, ServiceUnavailable)


class _Write(Struct, frozen=True, gc=False):
    """An operation that waits, and what both sides have once it is done.

    ``base`` is None for a deletion; ``moved_from`` is where a file was until then.
    """

    path: str
    operation: AnyOperation
    base: Base | None
    size: int = 0
    moved_from: str | None = None


class Storer:
    """Brings to the server what this machine has; call ``finish`` at the end of each kind of work."""

    def __init__(self, tree: LocalTree, state: State, server: Server, report: Report) -> None:
        self._tree = tree
        self._state = state
        self._server = server
        self._report = report
        self._waiting: list[_Write] = []
        self.deleted: set[str] = set()
        self.moved: set[str] = set()
        """Both names of files that were moved."""
        self.sent_again: set[str] = set()
        """What was stored before, and the server has not told of."""

    def delete(self, path: str, there: Remote) -> None:
        """Deletes what is known to be there; a directory only if it is empty."""
        is_directory = there.kind is Kind.DIRECTORY
        condition = None if is_directory else there.hash
        operation = DeleteOperation(path=self._server.path_of(path), if_match=condition)
        self._add(_Write(path, operation, None))

    def move(self, path: str, target: str, seen: Seen, hash: str) -> None:
        """Moves a file that is known to be there; ``moved`` tells behind ``finish`` whether it was."""
        operation = MoveOperation(
            path=self._server.path_of(path), to=self._server.path_of(target), if_match=hash
        )
        self._add(_Write(target, operation, base_of(seen, hash), moved_from=path))

    def store(self, path: str, seen: Seen, there: Remote | None) -> None:
        """Stores one entry in the place of what is known there; Left where it changes meanwhile."""
        base = self._state.base(path)
        if there is None and base is not None and base.standing == seen.standing:
            self.sent_again.add(path)
        if seen.kind is Kind.DIRECTORY:
            operation = MakeDirectoryOperation(path=self._server.path_of(path))
            self._add(_Write(path, operation, Base(Kind.DIRECTORY, "")))
        elif seen.kind is Kind.LINK:
            self._store_link(path, seen, there)
        elif seen.size > _SMALL:
            self.finish()
            self._store_large(path, there)
        else:
            self._store_small(path, there)

    def _add(self, write: _Write) -> None:
        self._waiting.append(write)
        is_full = sum(each.size for each in self._waiting) >= _GROUP_BYTES
        if is_full or len(self._waiting) >= _GROUP_FILES:
            self.finish()

    def _store_small(self, path: str, there: Remote | None) -> None:
        with self._tree.reading(path) as (descriptor, before):
            content = os.pread(descriptor, _SMALL + 1, 0)
            hash, after = hash_of(self._tree, path)
        if not after.is_like(before) or len(content) != after.size:
            raise Left("it changes while it is read", again=True)
        operation = PutOperation(
            path=self._server.path_of(path),
            content_base64=content,  # type: ignore[arg-type]  # JSON has bytes in base64
            content_hash=hash,
            updated_at=_time_of(after),
            if_match=None if there is None else there.hash,
            if_none_match="*" if there is None else None,
        )
        self._add(_Write(path, operation, base_of(after, hash), after.size))

    def _store_large(self, path: str, there: Remote | None) -> None:
        hash, seen = hash_of(self._tree, path)

        def pieces() -> Iterator[bytes]:
            with self._tree.reading(path) as (descriptor, now):
                if not now.is_like(seen):
                    raise Left("it changes while it is read", again=True)
                place = 0
                while piece := os.pread(descriptor, min(_PIECE, seen.size - place), place):
                    place += len(piece)
                    if place >= seen.size and not _is_untouched(descriptor, seen):
                        # Without its last piece the server stores nothing.
                        raise Left("it changes while it is read", again=True)
                    yield piece

        try:
            stored = self._server.store(path, pieces, seen.size, _time_of(seen), there)
            if stored != hash:
                raise Left("it changed while it was read", again=True)
            chunks = list(self._server.name_chunks(path, hash))
        except _ENDS:
            raise
        except SvcError as error:
            self._refused(path, error)
            return
        with self._state.transaction():
            self._state.set_base(path, base_of(seen, hash))
            self._state.note_unseen(path)
            self._state.note_chunks(path, chunks)
        self._report.done["stored"] += 1
        self._report.bytes_stored += seen.size

    def _store_link(self, path: str, seen: Seen, there: Remote | None) -> None:
        try:
            self._server.store_link(path, seen.value, there)
        except _ENDS:
            raise
        except SvcError as error:
            self._refused(path, error)
            return
        with self._state.transaction():
            self._state.set_base(path, base_of(seen, seen.value))
            self._state.note_unseen(path)
        self._report.done["stored"] += 1

    def finish(self) -> None:
        """Sends what waits, in one commit; what is refused is left out, and the others are sent again."""
        waiting, self._waiting = self._waiting, []
        while waiting:
            try:
                self._server.write([each.operation for each in waiting])
            except _ENDS:
                raise
            except SvcError as error:
                index = error.details.get("operation")
                if not (isinstance(index, int) and 0 <= index < len(waiting)):
                    index = 0 if len(waiting) == 1 else None
                if index is not None:
                    refused = waiting.pop(index)
                    if refused.moved_from is None:
                        # What can't be moved is deleted and stored instead.
                        self._refused(refused.path, error)
                else:
                    half = len(waiting) // 2
                    for self._waiting in (waiting[:half], waiting[half:]):
                        self.finish()
                    return
            else:
                self._note(waiting)
                return

    def _note(self, written: list[_Write]) -> None:
        with self._state.transaction():
            for each in written:
                if each.moved_from is not None and each.base is not None:
                    self._state.move_base(each.moved_from, each.path, each.base)
                else:
                    self._state.set_base(each.path, each.base)
                if each.base is not None:
                    self._state.note_unseen(each.path)
        moves = [each for each in written if each.moved_from is not None]
        self.moved.update(path for each in moves for path in (each.moved_from, each.path) if path is not None)
        self._report.done["moved_there"] += len(moves)
        written = [each for each in written if each.moved_from is None]
        self.deleted.update(each.path for each in written if each.base is None)
        stored = sum(each.base is not None for each in written)
        self._report.done["stored"] += stored
        self._report.done["deleted_there"] += len(written) - stored
        self._report.bytes_stored += sum(each.size for each in written)

    def _refused(self, path: str, error: SvcError) -> None:
        if path in self.sent_again and isinstance(error, (*_STALE, Forbidden)):
            return  # It is there and not shown, or the next answer tells what is.
        base = self._state.base(path)
        is_directory = base is not None and base.kind is Kind.DIRECTORY
        if isinstance(error, Conflict) and is_directory:
            # It holds what is not known here yet: it is not deleted, and comes again.
            with self._state.transaction():
                self._state.set_base(path, None)
        is_stale = isinstance(error, _STALE)
        self._report.leave(
            path, f"the server refuses it: {error.message}" if is_stale else error.message, is_stale
        )


def _is_untouched(descriptor: int, seen: Seen) -> bool:
    status = os.fstat(descriptor)
    return (status.st_size, status.st_mtime_ns) == (seen.size, seen.mtime_ns)


def _time_of(seen: Seen) -> int:
    return min(max(0, seen.mtime_ns // 1_000_000), _LATEST_MS)
