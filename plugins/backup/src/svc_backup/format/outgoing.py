"""Makes the bytes of an export or a patch: planned first, so that its size is known, then streamed.

Pieces come front to back. Stored records are copied as they are, in large reads in the order of the log, each
verified against its checksums on the way.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from types import TracebackType
from typing import IO, Self

import cbor2
from msgspec import Struct

from svc.errors import CorruptRecord
from svc.plugin import (
    Commit,
    Database,
    DatabaseTotals,
    Entry,
    Hash,
    Hold,
    ObjectKind,
    Path,
    PathChange,
    SystemPaths,
    Totals,
    TransactionRecord,
    format_path,
    hash_object,
    totals,
)
from svc_backup.format.layout import Deletions, encode_patch_header
from svc_maintenance.transfer import (
    EMPTY_ROOT,
    EMPTY_SYSTEM_ROOT,
    FIRST,
    HEAD_NAME,
    ChangeCounts,
    FileHeader,
    Selection,
    compress,
    encode_file_header,
    encode_record,
    is_reference,
    missing_paths,
    now_ms,
    record_size,
    reference_name,
    refuse_missing,
    storing,
)

__all__ = ["Outgoing", "OutgoingCounts", "plan_export", "plan_patch"]

_PIECE = 1 << 20
_GAP = 1 << 14
_PATHS_PER_RECORD = 1024
_PAUSE_EVERY = 4096
_HEADER = 72
_SYSTEM = "system"

Pause = Callable[[], None]
_Missing = Mapping[str, Sequence[Path]]


def _no_pause() -> None:
    return


class OutgoingCounts(Struct, frozen=True):
    """What a file holds.

    Attributes:
        files: of an export, files of the version; of a patch, files and links added or modified.
        links: of an export, symbolic links of the version; 0 for a patch.
        chunks: chunk records.
        chunk_bytes: stored bytes of those.
        directories: of an export, directories of the version without the root; of a patch, directories whose
            index it brings, with the root.
        changes: of a patch: added, modified, deleted files and links.
        snapshots: named snapshots that come with a privileged export.
        left_out: paths of the system tree that a privileged export lacks because no plugin declares what they
            are.
        lost: paths that an export lacks because a repair could not save what they need.
    """

    files: int
    links: int
    chunks: int
    chunk_bytes: int
    directories: int
    changes: ChangeCounts | None = None
    snapshots: int = 0
    left_out: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class Outgoing:
    """An export or a patch that is ready to be streamed. Made by ``plan_export`` and ``plan_patch``.

    ``root`` is the version that it makes; ``base``, of a patch, the one that it applies to, else None.
    """

    def __init__(
        self,
        root: Hash,
        base: Hash | None,
        counts: OutgoingCounts,
        parts: tuple[bytes, Selection, _DeletedPaths | None, Sequence[bytes]],
    ) -> None:
        self.root = root
        self.base = base
        self.counts = counts
        self._head, self._selection, self._deleted, self._last = parts
        self._hold: Hold | None = None
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives temporary files back, and lets go of the versions; closing twice does no harm."""
        if self._hold is not None:
            self._hold.release()
        self._selection.close()
        if self._deleted is not None:
            self._deleted.close()

    def keep(self, hold: Hold) -> None:
        """Keeps a hold of the versions until the end: a collection may not destroy what is to be streamed."""
        self._hold = hold

    def pieces(self) -> Iterator[bytes]:
        """Yields the file in pieces of about a megabyte; memory holds one or two of them.

        Raises CorruptRecord where a record of the database is damaged; the file is then not to be used.
        """
        yield self._head
        yield from _joined(chain(self._selection.pieces(), self._behind()))

    def _behind(self) -> Iterator[bytes]:
        if self._deleted is not None:
            yield from self._deleted.framed()
        yield from self._last


def plan_export(
    database: Database,
    root: Hash,
    *,
    system_paths: SystemPaths | None = None,
    without_lost: bool = False,
    pause: Pause = _no_pause,
) -> Outgoing:
    """Plans a file that is a database of its own: one version, one commit, nothing that it does not need.

    Reads the version's nodes and file records. Whatever is written meanwhile does not matter: a version never
    changes. The caller closes what this returns. ``pause`` is called now and then, to let others run.

    ``system_paths`` makes it a privileged backup: it holds what these say of the system tree, and refs with
    all their versions; what nobody declares is left out, and named. The caller has checked the right to it.

    ``without_lost`` leaves out the paths that need what a repair could not save: the file then holds another
    version than the one that was asked for, and the counts name what it lacks.

    Raises NotFound for no such version, and CorruptRecord where what it needs is damaged; of what is lost it
    names the paths.
    """
    database.require_version(root)
    with database.hold():
        try:
            return _plan_export(database, root, system_paths, {}, pause)
        except CorruptRecord:
            system_root = None if system_paths is None else database.system().root
            lost = _of_export(database, missing_paths(database, root, system_root), system_paths)
            if not lost:
                raise
        if not without_lost:
            raise refuse_missing(lost, "Leave it out (without_lost, --without-lost), or store it again.")
        return _plan_export(database, root, system_paths, lost, pause)


def _of_export(database: Database, missing: _Missing, system_paths: SystemPaths | None) -> _Missing:
    """Returns what of missing things an export would hold."""
    if system_paths is None:
        return missing
    included = {path for path, _ in system_paths.included(database.objects, database.system().root)}
    refs = {HEAD_NAME, *(reference_name(path) for path in included if is_reference(path))}
    of_system = [path for path in missing.get(_SYSTEM, ()) if path in included]
    found = {ref: paths for ref, paths in missing.items() if ref in refs}
    return {**found, _SYSTEM: of_system} if of_system else found


def _plan_export(
    database: Database, root: Hash, system_paths: SystemPaths | None, lost: _Missing, pause: Pause
) -> Outgoing:
    hold = database.hold()
    system_root, snapshots = EMPTY_SYSTEM_ROOT, 0
    left_out: tuple[str, ...] = ()
    selection = Selection(database, pause)
    try:
        created_ms = now_ms()
        if HEAD_NAME in lost:
            entry = selection.add_version_without(root, lost[HEAD_NAME], created_ms)
            root, below = entry.hash, entry.totals or Totals()
        else:
            selection.add_version(root)
            below = totals(database.objects, root)
        if system_paths is not None:
            system_root, snapshots, left_out = _add_system_tree(selection, database, system_paths, lost)
        head = encode_file_header(FileHeader(uuid.uuid4().bytes, created_ms))
        end, chunks, chunk_bytes = _measure(selection, None, pause)
        counts = OutgoingCounts(
            below.files,
            below.symlinks,
            chunks,
            chunk_bytes,
            below.directories,
            snapshots=snapshots,
            left_out=left_out,
            lost=tuple(_shown(lost)),
        )
        held = DatabaseTotals(below.files, below.directories, below.symlinks, below.size, chunks, chunk_bytes)
        roots = (root, system_root, EMPTY_ROOT)
        commit = _encode_commit(roots, created_ms, end, held, f"Export of version {root.hex()}")
        outgoing = Outgoing(root, None, counts, (head, selection, None, [commit]))
        outgoing.keep(hold)
        outgoing.size = end + len(commit)
    except BaseException:
        hold.release()
        selection.close()
        raise
    return outgoing


def _shown(lost: _Missing) -> Iterator[str]:
    for ref, paths in lost.items():
        for path in paths:
            yield format_path(path) if ref == HEAD_NAME else f"{format_path(path)} of {ref}"


def plan_patch(database: Database, base: Hash, target: Hash, *, pause: Pause = _no_pause) -> Outgoing:
    """Plans a file that makes one version of another: what the target needs and the base does not have.

    The caller closes what this returns. Raises as ``plan_export``.
    """
    database.require_version(base)
    database.require_version(target)
    with database.hold():
        try:
            return _plan_patch(database, base, target, pause)
        except CorruptRecord:
            lost = missing_paths(database, target) or missing_paths(database, base)
            if not lost:
                raise
            raise refuse_missing(
                lost, "A patch cannot leave anything out: write an export (without_lost, --without-lost)."
            ) from None


def _plan_patch(database: Database, base: Hash, target: Hash, pause: Pause) -> Outgoing:
    hold = database.hold()
    selection = Selection(database, pause)
    deleted = _DeletedPaths()
    try:
        changes = selection.add_difference(base, target, deleted.add)
        created_ms = now_ms()
        deleted.finish(base, target, changes, created_ms)
        header = FileHeader(uuid.uuid4().bytes, created_ms)
        below = totals(database.objects, target)
        end, chunks, chunk_bytes = _measure(selection, deleted, pause)
        counts = OutgoingCounts(
            changes.added + changes.modified, 0, chunks, chunk_bytes, selection.directories, changes
        )
        held = DatabaseTotals(below.files, below.directories, below.symlinks, below.size, chunks, chunk_bytes)
        message = f"Patch from version {base.hex()} to {target.hex()}"
        roots = (target, EMPTY_SYSTEM_ROOT, base)
        commit = _encode_commit(roots, created_ms, end, held, message)
        head = encode_patch_header(header, base, target)
        outgoing = Outgoing(target, base, counts, (head, selection, deleted, [commit]))
        outgoing.keep(hold)
        outgoing.size = end + len(commit)
    except BaseException:
        hold.release()
        selection.close()
        deleted.close()
        raise
    return outgoing


def _add_system_tree(
    selection: Selection, database: Database, system_paths: SystemPaths, lost: _Missing
) -> tuple[Hash, int, tuple[str, ...]]:
    """Returns the root of the system tree, the number of its refs, and what nobody declares."""
    present, refs = database.system().root, 0

    def chosen() -> Iterator[tuple[Path, Entry]]:
        nonlocal refs
        for path, entry in system_paths.included(database.objects, present):
            if is_reference(path):
                refs += 1
                missing = lost.get(reference_name(path))
                if missing:
                    yield path, selection.add_version_without(entry.hash, missing, entry.updated_ms)
                    continue
            if path not in lost.get(_SYSTEM, ()):
                yield path, entry

    root = selection.add_system_tree(chosen())
    return root, refs, tuple(map(format_path, system_paths.undeclared(database.objects, present)))


def _measure(selection: Selection, deleted: _DeletedPaths | None, pause: Pause) -> tuple[int, int, int]:
    """Returns the offset of the commit, the number of chunks, and their stored bytes."""
    end = FIRST + sum(map(len, selection.new_nodes))
    chunks = chunk_bytes = 0
    for chunks, (_, stored_length) in enumerate(selection.chunks(), 1):
        chunk_bytes += stored_length
        end += record_size(stored_length)
        if chunks % _PAUSE_EVERY == 0:
            pause()
    for places in (selection.records(), selection.nodes()):
        for count, (_, stored_length) in enumerate(places, 1):
            end += record_size(stored_length)
            if count % _PAUSE_EVERY == 0:
                pause()
    return end + (deleted.size if deleted is not None else 0), chunks, chunk_bytes


def _encode_commit(
    roots: tuple[Hash, Hash, Hash], time_ms: int, offset: int, held: DatabaseTotals, message: str
) -> bytes:
    """Returns the framed commit that closes a file; everything before it was on disk when it came there."""
    root, system_root, parent_root = roots
    change = PathChange("ref", ("HEAD",))
    commit = Commit(
        1,
        None,
        time_ms,
        root,
        system_root,
        parent_root,
        EMPTY_SYSTEM_ROOT,
        0,
        offset,
        held,
        (TransactionRecord(None, message, "HEAD", (change,)),),
    )
    payload = commit.encode()
    hash = hash_object(ObjectKind.COMMIT, payload)
    return encode_record(ObjectKind.COMMIT, hash, payload, time_ms=time_ms, system=True)


def _joined(pieces: Iterator[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _PIECE // 2:
            yield b"".join(held) if len(held) > 1 else piece
            held, size = [], 0
    if held:
        yield b"".join(held)


class _DeletedPaths:
    """The deletion records of a patch; paths wait in a temporary file, since the counts stand before them."""

    def __init__(self) -> None:
        self._page: list[str] = []
        self._file: IO[bytes] | None = None
        self._lengths: list[int] = []
        self._heads: tuple[Hash, Hash, ChangeCounts, int] | None = None
        self.size = 0

    def add(self, path: Path) -> None:
        self._page.append(format_path(path))
        if len(self._page) >= _PATHS_PER_RECORD:
            self._write_out()

    def finish(self, base: Hash, target: Hash, counts: ChangeCounts, time_ms: int) -> None:
        """Says what stands in every record; afterwards ``size`` is known."""
        if self._page or not self._lengths:
            self._write_out()
        self._heads = (base, target, counts, time_ms)
        self.size = sum(map(len, self.framed()))

    def framed(self) -> Iterator[bytes]:
        assert self._heads is not None
        assert self._file is not None
        base, target, counts, time_ms = self._heads
        self._file.seek(0)
        for length in self._lengths:
            paths = tuple(cbor2.loads(self._file.read(length)))
            payload = Deletions(base, target, counts, paths).encode()
            hash = hash_object(ObjectKind.DELETION, payload)
            codec, stored = compress(payload)
            yield encode_record(
                ObjectKind.DELETION, hash, stored, codec=codec, raw_length=len(payload), time_ms=time_ms
            )

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _write_out(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="svc-deleted-")  # noqa: SIM115
        page = cbor2.dumps(self._page)
        with storing():
            self._file.write(page)
            self._file.flush()
        self._lengths.append(len(page))
        self._page = []
