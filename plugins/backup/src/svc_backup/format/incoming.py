"""A file that comes in: what it claims to be, and where in it each object lies.

Headers, their order and their lengths are checked in one pass; then any object can be read by its hash,
verified down to its BLAKE3 identity.
"""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from types import TracebackType
from typing import Self, TypeVar

import lmdb
from msgspec import Struct

from svc.errors import CorruptRecord, ForeignFile, InsufficientStorage, RefusedFile, TruncatedFile
from svc.plugin import Commit, Hash, ObjectKind
from svc_backup.format.layout import TransferHeader, decode_transfer_header
from svc_maintenance.transfer import (
    EMPTY_ROOT,
    EMPTY_SYSTEM_ROOT,
    FILE_HEADER_SIZE,
    FIRST,
    FilePlace,
    ScannedRecord,
    check_record,
    decoded,
    read_verified,
    scan_records,
    storing,
)

__all__ = ["IncomingFile", "IncomingLimits", "read_header", "refusing"]

T = TypeVar("T")

_PLACE = struct.Struct("<IQIIBBB")
_BATCH = 8192
_PAUSE_EVERY = 256
_MAP_SIZE = 1 << 40


class IncomingLimits(Struct, frozen=True):
    """What a file may ask for, whatever it states.

    Attributes:
        file_bytes: None for no limit.
        expansion: most bytes of uncompressed content for each byte of the file, besides ``least_content``.
        least_content: bytes of uncompressed content that a file of any size may have.
    """

    file_bytes: int | None = None
    expansion: int = 1024
    least_content: int = 1 << 30


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Turns what is said of damage in the file into one refusal: it is not damage of the database."""
    try:
        yield
    except TruncatedFile as error:
        raise RefusedFile(f"The file is cut short: {error.message}", **error.details) from error
    except CorruptRecord as error:
        raise RefusedFile(f"The file is damaged: {error.message}", **error.details) from error


def read_header(data: bytes, name: str = "the file") -> TransferHeader:
    """Returns what the first 128 bytes of an export or a patch say, before the rest has come.

    Raises ForeignFile, UnsupportedFormat or RefusedFile where it is neither.
    """
    with refusing():
        return decode_transfer_header(data, name)


class IncomingFile:
    """An opened export or patch. Its headers have been checked; ``check_incoming`` checks the rest.

    Args:
        descriptor: of the file, seekable; it stays the caller's.
        name: the file's name as messages may show it.
        limits: what it may ask for.
        directory: where its temporary index goes, unnamed; None means the system's place for such.
        pause: called now and then, to let others run.

    Attributes:
        commit: the commit that closes it.
        objects: number of objects in it.
        counts: number of records by kind.

    Raises ForeignFile for what is nothing of svc's, or a database with a history, UnsupportedFormat, and
    RefusedFile where it is damaged, cut short, or asks for too much.
    """

    def __init__(
        self,
        descriptor: int,
        name: str = "the file",
        *,
        limits: IncomingLimits | None = None,
        directory: FilePath | None = None,
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        self._descriptor = descriptor
        self.name = name
        self._pause = pause
        self.size = os.fstat(descriptor).st_size
        self.limits = limits if limits is not None else IncomingLimits()
        if self.limits.file_bytes is not None and self.size > self.limits.file_bytes:
            raise RefusedFile(
                f"The file has more than {self.limits.file_bytes} bytes.", limit=self.limits.file_bytes
            )
        with refusing():
            self.header = decode_transfer_header(self.read(0, FILE_HEADER_SIZE), name)
        self.is_patch = self.header.target is not None
        self.counts = dict.fromkeys(ObjectKind, 0)
        self.deletions: list[ScannedRecord] = []
        self.objects = 0
        self._environment = _temporary_environment(directory)
        self._reading: lmdb.Transaction[bytes] | None = None
        try:
            with refusing():
                self.commit = self._take_commit(self._scan())
            self._reading = self._environment.begin()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def root(self) -> Hash:
        """The version that it makes."""
        return self.commit.root

    @property
    def base(self) -> Hash | None:
        """The version that a patch applies to; None for an export."""
        return self.header.base

    @property
    def has_system_data(self) -> bool:
        """Whether it is a privileged backup."""
        return self.commit.system_root != EMPTY_SYSTEM_ROOT

    def close(self) -> None:
        """Gives the temporary index back; the descriptor stays open. Closing twice does no harm."""
        if self._reading is not None:
            self._reading.abort()
            self._reading = None
        self._environment.close()

    def read(self, offset: int, length: int) -> bytes:
        """Returns bytes of the file; fewer only where it ends."""
        data = os.pread(self._descriptor, length, offset)
        while 0 < len(data) < length:
            more = os.pread(self._descriptor, length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def find(self, hash: Hash) -> FilePlace | None:
        """Returns where an object lies, or None when the file does not have it."""
        assert self._reading is not None
        packed = self._reading.get(hash)
        return None if packed is None else FilePlace._make(_PLACE.unpack(packed))

    def ordinal(self, hash: Hash) -> int | None:
        """Returns which object of the file has an identity, from 0, or None; faster than ``find``."""
        assert self._reading is not None
        packed = self._reading.get(hash)
        return None if packed is None else int.from_bytes(packed[:4], "little")

    def content(self, hash: Hash, place: FilePlace) -> bytes:
        """Returns an object's content; CorruptRecord unless header, checksums, length and identity hold."""
        return read_verified(self.read, hash, place)

    def records(self) -> Iterator[ScannedRecord]:
        """Yields the records in order, with payloads whose checksums hold."""
        with refusing():
            yield from scan_records(self.read, FIRST, self.size, payloads=True, verify=True)

    # -- the pass over the headers ---------------------------------------------------------------

    def _scan(self) -> ScannedRecord:
        """Checks every record's header and notes the objects; returns the commit, the last record."""
        allowed = self.limits.expansion * self.size + self.limits.least_content
        batch: list[tuple[bytes, bytes]] = []
        last: ScannedRecord | None = None
        content = count = 0
        for count, record in enumerate(scan_records(self.read, FIRST, self.size), 1):
            if last is not None:
                raise _history(self.name)
            self._check_record(record)
            content += record.raw_length
            if content > allowed:
                raise RefusedFile("The file states more content than the limit on its expansion allows.")
            self.counts[record.kind] += 1
            if record.kind is ObjectKind.COMMIT:
                last = record
            elif record.kind is ObjectKind.DELETION:
                self.deletions.append(record)
            else:
                batch.append((record.hash, self._packed(record)))
                self.objects += 1
                if len(batch) >= _BATCH:
                    self._note(batch)
            if count % _PAUSE_EVERY == 0:
                self._pause()
        self._note(batch)
        if last is None:
            raise TruncatedFile("no commit closes it.", offset=self.size)
        return last

    def _packed(self, record: ScannedRecord) -> bytes:
        return _PLACE.pack(
            self.objects,
            record.offset,
            record.stored_length,
            record.raw_length,
            record.kind,
            record.system,
            record.codec,
        )

    def _check_record(self, record: ScannedRecord) -> None:
        if record.kind is ObjectKind.VOID or (record.kind is ObjectKind.DELETION and not self.is_patch):
            raise _history(self.name)
        check_record(record)

    def _note(self, batch: list[tuple[bytes, bytes]]) -> None:
        batch.sort()
        try:
            with self._environment.begin(write=True) as transaction:
                _, added = transaction.cursor().putmulti(batch, overwrite=False)
        except lmdb.Error as error:
            raise InsufficientStorage("There is no space left for the index of the file.") from error
        if added != len(batch):
            raise CorruptRecord("it holds an object twice.")
        batch.clear()

    def _take_commit(self, record: ScannedRecord) -> Commit:
        place = FilePlace(
            0,
            record.offset,
            record.stored_length,
            record.raw_length,
            record.kind,
            record.system,
            record.codec,
        )
        payload = self.content(record.hash, place)
        commit = decoded(_canonical_commit, payload, "its commit")
        if commit.sequence != 1:
            raise _history(self.name)
        header = self.header
        expected_base = EMPTY_ROOT if header.base is None else header.base
        holds = (
            record.system
            and commit.parent is None
            and commit.parent_root == expected_base
            and commit.parent_system_root == EMPTY_SYSTEM_ROOT
            and commit.first_offset == 0
            and commit.durable_end == record.offset
            and header.target in (None, commit.root)
            and commit.totals.chunks == self.counts[ObjectKind.CHUNK]
        )
        if not holds or (self.is_patch and commit.system_root != EMPTY_SYSTEM_ROOT):
            if commit.durable_end != record.offset:
                raise _history(self.name)
            raise CorruptRecord("its commit does not fit the rest of it.", offset=record.offset)
        if self.is_patch and not self.deletions:
            raise CorruptRecord("it has no deletion record.")
        return commit


def _canonical_commit(payload: bytes) -> Commit:
    commit = Commit.decode(payload)
    if commit.encode() != payload:
        raise CorruptRecord("its commit is not as it must be.")
    return commit


def _history(name: str) -> ForeignFile:
    return ForeignFile(
        f"{name} is a database with a history, not an export or a patch: 'svc export' makes an export of it."
    )


def _temporary_environment(directory: FilePath | None) -> lmdb.Environment:
    """An LMDB environment without a name: whatever ends this process, nothing is left of it."""
    with storing():
        home = FilePath(tempfile.mkdtemp(prefix="svc-incoming-", dir=directory))
    try:
        return lmdb.open(
            str(home), map_size=_MAP_SIZE, sync=False, metasync=False, lock=False, readahead=False
        )
    except lmdb.Error as error:
        raise InsufficientStorage("There is no space left for the index of the file.") from error
    finally:
        for name in ("data.mdb", "lock.mdb"):
            with contextlib.suppress(FileNotFoundError):
                (home / name).unlink()
        home.rmdir()
