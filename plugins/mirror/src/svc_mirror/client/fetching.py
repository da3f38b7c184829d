"""From the server to this machine: directories, links, and files chunk by chunk.

A file is put together beside its place, and gets its name when it is whole and on the disk. A chunk that is
here, in a part of an earlier run or in another file, is not fetched again.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from msgspec import Struct

from svc.errors import InsufficientStorage, NotFound, PreconditionFailed
from svc.plugin import content_hasher, hash_content
from svc_mirror.client.links import target_here
from svc_mirror.client.local_tree import Left, LocalTree
from svc_mirror.client.report import Report
from svc_mirror.client.server import Server, unpacked_chunks
from svc_mirror.client.state import State
from svc_mirror.client.values import Base, Kind, Remote, Seen

__all__ = ["Fetcher", "base_of"]

_GROUP_FILES = 500
_GROUP_BYTES = 4 << 20
_SYNCING = 8
_PIECE = 1 << 20
_RACY_NS = 50_000_000


class _Wanted(Struct, frozen=True, gc=False):
    path: str
    there: Remote
    seen: Seen | None


class _Ready(Struct, frozen=True, gc=False):
    wanted: _Wanted
    part: str
    chunks: list[tuple[bytes, int]]


def base_of(seen: Seen, value: str) -> Base:
    """Returns what is noted of a file of this machine once both sides have it.

    One that was changed this very moment may change again without another time: it is read the next time.
    """
    is_racy = time.time_ns() - seen.mtime_ns < _RACY_NS
    return Base(seen.kind, value, seen.size, seen.mtime_ns, 0 if is_racy else seen.ctime_ns, seen.inode)


class Fetcher:
    """Brings to this machine what the server has; call ``finish`` at the end."""

    def __init__(self, tree: LocalTree, state: State, server: Server, report: Report) -> None:
        self._tree = tree
        self._state = state
        self._server = server
        self._report = report
        self._small: list[_Wanted] = []
        self._ready: list[_Ready] = []

    def fetch(self, path: str, there: Remote, seen: Seen | None) -> None:
        """Fetches one entry; ``seen`` is what it replaces. Small files wait for others. Raises Left."""
        wanted = _Wanted(path, there, seen)
        if there.kind is Kind.DIRECTORY:
            self._tree.make_directory(path)
            with self._state.transaction():
                self._state.set_base(path, Base(Kind.DIRECTORY, ""))
        elif there.kind is Kind.LINK:
            self._make_link(wanted)
        elif not there.size:
            if there.hash != hash_content(b"").hex():
                raise Left("the server says that it is empty, and that it has another hash")
            self._ready.append(_Ready(wanted, self._write_part([]), []))
        elif there.chunks is not None and len(unpacked_chunks(there.chunks)) == 1:
            self._small.append(wanted)
        else:
            self.finish()
            self._ready.append(self._assemble(wanted))
            self._place_ready()
        if (
            len(self._small) + len(self._ready) >= _GROUP_FILES
            or sum(each.there.size for each in self._small) >= _GROUP_BYTES
        ):
            self.finish()

    def finish(self) -> None:
        """Fetches the files that wait, and gives all that are whole their places."""
        waiting, self._small = self._small, []
        if waiting:
            chunks = {each.path: unpacked_chunks(each.there.chunks or b"")[0][0] for each in waiting}
            found = self._server.read_chunks(list(chunks.values()))
            for each in waiting:
                data = found.get(chunks[each.path])
                if data is None:
                    self._report.leave(each.path, "it changed on the server meanwhile", True)
                    continue
                self._report.bytes_fetched += len(data)
                self._ready.append(_Ready(each, self._write_part([data]), []))
        self._place_ready()

    def _place_ready(self) -> None:
        ready, self._ready = self._ready, []
        if not ready:
            return
        with _full_disk(), ThreadPoolExecutor(_SYNCING) as pool:
            # Side by side: a file system puts many on the disk in the time of one.
            list(pool.map(_finish_part, [(each.part, each.wanted.there.updated_ms) for each in ready]))
        placed: list[tuple[_Ready, Seen]] = []
        for each in ready:
            try:
                placed.append((each, self._tree.place(each.part, each.wanted.path, each.wanted.seen)))
            except (Left, FileNotFoundError) as error:
                self._report.leave(each.wanted.path, str(error), getattr(error, "again", True))
                with suppress(FileNotFoundError):
                    os.unlink(each.part)
        self._tree.sync_parents([each.wanted.path for each, _ in placed])
        with self._state.transaction():
            for each, seen in placed:
                self._state.set_base(each.wanted.path, base_of(seen, each.wanted.there.hash))
                self._state.note_chunks(each.wanted.path, each.chunks)
        self._report.done["fetched"] += len(placed)

    def _make_link(self, wanted: _Wanted) -> None:
        target = target_here(wanted.there.target, wanted.path, self._server.directory)
        if target is None:
            raise Left("the link of the server leads out of the directory")
        part = self._new_part()
        with _full_disk():
            os.symlink(target, part)
        seen = self._tree.place(part, wanted.path, wanted.seen)
        self._tree.sync_parents([wanted.path])
        with self._state.transaction():
            self._state.set_base(wanted.path, base_of(seen, wanted.there.target))
        self._report.done["fetched"] += 1

    def _new_part(self) -> str:
        return os.path.join(self._tree.parts, secrets.token_hex(8))

    def _write_part(self, pieces: Iterable[bytes]) -> str:
        part = self._new_part()
        with _full_disk(), open(part, "xb") as file:
            file.writelines(pieces)
        return part

    def _assemble(self, wanted: _Wanted) -> _Ready:
        """Puts a file of many chunks together, from where an earlier run has left it."""
        there = wanted.there
        part = os.path.join(self._tree.parts, there.hash)
        if self._copy(there, part):
            return _Ready(wanted, part, [])
        try:
            chunks = (
                list(self._server.name_chunks(wanted.path, there.hash))
                if there.chunks is None
                else unpacked_chunks(there.chunks)
            )
        except (NotFound, PreconditionFailed):
            raise Left("it changed on the server meanwhile", again=True) from None
        with _full_disk(), open(part, "a+b", buffering=0) as file:
            hasher = content_hasher()
            file.seek(0)
            count = 0
            for hash, size in chunks:
                data = file.read(size)
                if _hash(data) != hash:
                    break
                hasher.update(data)
                count += 1
            file.truncate(sum(size for _, size in chunks[:count]))
            for data in self._pieces(chunks[count:]):
                rest = memoryview(data)
                while rest:
                    rest = rest[file.write(rest) :]
                hasher.update(data)
        if hasher.hexdigest() != there.hash:
            os.unlink(part)
            raise Left("the server sent other bytes than the file has")
        return _Ready(wanted, part, chunks)

    def _pieces(self, chunks: list[tuple[bytes, int]]) -> Iterator[bytes]:
        """Yields chunks in order: from this machine where it has them, else from the server, in groups."""
        group: list[tuple[bytes, bytes | None]] = []
        asked = 0
        for hash, size in chunks:
            data = self._chunk_here(hash)
            group.append((hash, data))
            asked += 0 if data is not None else size
            if asked >= _GROUP_BYTES or len(group) >= _GROUP_FILES:
                yield from self._completed(group)
                group, asked = [], 0
        yield from self._completed(group)

    def _completed(self, group: list[tuple[bytes, bytes | None]]) -> Iterator[bytes]:
        found = self._server.read_chunks([hash for hash, data in group if data is None])
        self._report.bytes_fetched += sum(map(len, found.values()))
        for hash, data in group:
            whole = found.get(hash) if data is None else data
            if whole is None:
                raise Left("it changed on the server meanwhile", again=True)
            yield whole

    def _chunk_here(self, hash: bytes) -> bytes | None:
        for path, place, size in self._state.places_of_chunk(hash):
            with suppress(Left, OSError), self._tree.reading(path) as (descriptor, _):
                data = os.pread(descriptor, size, place)
                if _hash(data) == hash:
                    return data
        return None

    def _copy(self, there: Remote, part: str) -> bool:
        """Makes a part of a file of this machine that has the same content, if there is one."""
        for path in self._state.paths_of_content(there.hash):
            hasher = content_hasher()
            with (
                suppress(Left, OSError),
                _full_disk(),
                self._tree.reading(path) as (descriptor, _),
                open(part, "wb") as file,
            ):
                while piece := os.read(descriptor, _PIECE):
                    hasher.update(piece)
                    file.write(piece)
            if hasher.hexdigest() == there.hash:
                return True
        return False


def _finish_part(finished: tuple[str, int]) -> None:
    """Gives a part the time of its file, and puts it on the disk."""
    part, time_ms = finished
    descriptor = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.utime(descriptor, ns=(time_ms * 1_000_000, time_ms * 1_000_000))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _hash(data: bytes) -> bytes:
    hasher = content_hasher()
    hasher.update(data)
    return hasher.digest()


@contextmanager
def _full_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InsufficientStorage("The disk of the directory is full.") from error
        raise
