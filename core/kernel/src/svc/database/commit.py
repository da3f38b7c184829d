"""The commit record: what closes a batch in the log, and what the feed gives to its readers.

Values without I/O; CBOR (RFC 8949) in and out. A commit names both roots, its parent, who did what to
which paths, and the running totals, so that statistics are exact and cost nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from io import BytesIO
from typing import Any, NamedTuple

import cbor2
from msgspec import Struct

from svc.database.origins import Origin
from svc.errors import CorruptRecord, UnsupportedFormat
from svc.hashing import HASH_SIZE, Hash
from svc.paths import Path, format_path

__all__ = ["Commit", "CommitSummary", "DatabaseTotals", "PathChange", "TransactionRecord"]

PAYLOAD_VERSION = 1
SWEEP_VERSION = 2
"""Of a commit that begins a sweep. Programs that know none, and would take in what it destroys, refuse it."""
PACKS_VERSION = 3
"""Of one that does so where packs hold commits. Programs that know none, and would miss them, refuse it."""
CHANGE_KINDS = ("put", "delete", "move", "copy", "link", "mkdir", "ref")
_KIND_NUMBERS = {kind: number for number, kind in enumerate(CHANGE_KINDS)}

# Major types of CBOR as they stand in an item's first byte (RFC 8949, section 3.1), and what never varies.
_UNSIGNED, _TEXT, _ARRAY = 0x00, 0x60, 0x80
_NULL = b"\xf6"
_START = bytes((_ARRAY + 12, PAYLOAD_VERSION))
_SWEEP_START = bytes((_ARRAY + 12, SWEEP_VERSION))
_PACKS_START = bytes((_ARRAY + 12, PACKS_VERSION))
_SUMMARY_BYTES = 256
"""Fields 0 to 9 have at most 208."""

_TOTALS = bytes((_ARRAY + 6,))
_HASH = bytes((0x58, HASH_SIZE))
_FIRST_BYTES = tuple(bytes((number,)) for number in range(256))
_PAIRS = tuple(bytes((_ARRAY + 2, number)) for number in range(24))
_TRIPLES = tuple(bytes((_ARRAY + 3, number)) for number in range(24))
_pack_8, _pack_16, _pack_32, _pack_64 = [struct.Struct(f">B{code}").pack for code in "BHIQ"]


class PathChange(Struct, frozen=True, gc=False):
    """One path operation of a committed transaction.

    Attributes:
        kind: ``put``, ``delete``, ``move``, ``copy``, ``link``, ``mkdir`` or ``ref``.
        path: what was changed; the destination of a move or copy; the name of a ref.
        source: the source of a move or copy, else None.
        system: whether the path is one of the system tree.
    """

    kind: str
    path: Path
    source: Path | None = None
    system: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {format_path(self.path)}"


class TransactionRecord(Struct, frozen=True):
    """One transaction of a commit.

    Attributes:
        actor: who made it (a user id), or None.
        message: what for, or None.
        ref: which tree it changed: ``HEAD`` or the name of a ref.
        changes: what it did, in order.
        root: root of the tree of ``ref`` after the commit; None for HEAD, whose root the commit names.
    """

    actor: str | None
    message: str | None
    ref: str
    changes: tuple[PathChange, ...]
    root: Hash | None = None

    @property
    def origin(self) -> Origin | None:
        """Where it was made first; None: in this database."""
        return Origin.read(self.actor, self.message)


class DatabaseTotals(Struct, frozen=True):
    """How much the database holds.

    Attributes:
        files: number of files at HEAD.
        directories: number of directories at HEAD, without the root.
        symlinks: number of symbolic links at HEAD.
        size: bytes of the files at HEAD.
        chunks: number of different chunks in the log, of all versions.
        chunk_bytes: stored bytes of those chunks.
    """

    files: int = 0
    directories: int = 0
    symlinks: int = 0
    size: int = 0
    chunks: int = 0
    chunk_bytes: int = 0


class CommitSummary(NamedTuple):
    """What an opening needs of a commit, as ``Commit`` has it; what it did takes long to read."""

    sequence: int
    time_ms: int
    root: Hash
    system_root: Hash
    durable_end: int

    @classmethod
    def decode(cls, payload: bytes) -> CommitSummary:
        """Returns the summary of a commit record's payload; errors as ``Commit.decode``."""
        if payload[:2] not in (_START, _SWEEP_START, _PACKS_START):
            return Commit.decode(payload).summary()  # says what is wrong
        decoder = cbor2.CBORDecoder(BytesIO(payload[2:_SUMMARY_BYTES]))
        try:
            fields = [decoder.decode() for _ in range(9)]
        except (cbor2.CBORDecodeError, ValueError) as error:
            raise CorruptRecord("A commit record is not of the expected form.") from error
        sequence, _, time_ms, root, system_root, *_, durable_end = fields
        if not all(isinstance(number, int) for number in (sequence, time_ms, durable_end)):
            raise CorruptRecord("A commit record is not of the expected form.")
        return cls(sequence, time_ms, root, system_root, durable_end)


class Commit(Struct, frozen=True):
    """One commit of the feed.

    Attributes:
        sequence: its number; commits are numbered from 1 without gaps.
        parent: identity of the commit record before it; None for the first.
        time_ms: Unix milliseconds, never less than the parent's.
        root: user root after it.
        system_root: system root after it.
        parent_root: user root before it.
        parent_system_root: system root before it.
        first_offset: where in the log the earliest record begins that was appended ahead for it; 0
            when all that it brought lies directly before it.
        durable_end: offset in the log up to which everything was known to be on disk when it was
            made: damage before it is rot, not a torn append.
        totals: what the database holds after it.
        transactions: what was done.
        begins_sweep: whether the plan that it brings destroys what is dead.
        has_packs: whether it begins a sweep while packs hold commits.
    """

    sequence: int
    parent: Hash | None
    time_ms: int
    root: Hash
    system_root: Hash
    parent_root: Hash
    parent_system_root: Hash
    first_offset: int
    durable_end: int
    totals: DatabaseTotals
    transactions: tuple[TransactionRecord, ...]
    begins_sweep: bool = False
    has_packs: bool = False

    def encode(self) -> bytes:
        """Returns the canonical CBOR payload of the commit record (docs/format/commit.md)."""
        totals = self.totals
        return b"".join(
            [
                _PACKS_START if self.has_packs else _SWEEP_START if self.begins_sweep else _START,
                _head(_UNSIGNED, self.sequence),
                *((_NULL,) if self.parent is None else (_HASH, self.parent)),
                _head(_UNSIGNED, self.time_ms),
                _HASH,
                self.root,
                _HASH,
                self.system_root,
                _HASH,
                self.parent_root,
                _HASH,
                self.parent_system_root,
                _head(_UNSIGNED, self.first_offset),
                _head(_UNSIGNED, self.durable_end),
                _TOTALS,
                _head(_UNSIGNED, totals.files),
                _head(_UNSIGNED, totals.directories),
                _head(_UNSIGNED, totals.symlinks),
                _head(_UNSIGNED, totals.size),
                _head(_UNSIGNED, totals.chunks),
                _head(_UNSIGNED, totals.chunk_bytes),
                _head(_ARRAY, len(self.transactions)),
                *[_encode_transaction(one) for one in self.transactions],
            ]
        )

    def summary(self) -> CommitSummary:
        """Returns what an opening needs of it."""
        return CommitSummary(self.sequence, self.time_ms, self.root, self.system_root, self.durable_end)

    def ref_roots(self) -> tuple[Hash, ...]:
        """Returns the roots to which it brought trees other than HEAD's."""
        return tuple(one.root for one in self.transactions if one.root is not None)

    @classmethod
    def decode(cls, payload: bytes) -> Commit:
        """Returns the commit of a payload.

        Raises:
            CorruptRecord: it is not one.
            UnsupportedFormat: its version is newer than this program.
        """
        try:
            fields = cbor2.loads(payload)
        except (cbor2.CBORDecodeError, ValueError, RecursionError) as error:
            raise CorruptRecord("A commit record is not CBOR.") from error
        if not isinstance(fields, list) or not fields or not isinstance(fields[0], int):
            raise CorruptRecord("A commit record is not of the expected form.")
        if fields[0] not in (PAYLOAD_VERSION, SWEEP_VERSION, PACKS_VERSION):
            raise UnsupportedFormat(
                f"A commit has version {fields[0]}; this program reads 1 to {PACKS_VERSION}."
            )
        try:
            return _from_fields(cls, fields)
        except (TypeError, ValueError, IndexError, KeyError) as error:
            raise CorruptRecord("A commit record is not of the expected form.") from error


def _from_fields(kind: type[Commit], fields: list[Any]) -> Commit:
    (version, sequence, parent, time_ms, root, system_root, parent_root, parent_system) = fields[:8]
    first_offset, durable_end, totals, rows = fields[8:]
    for hash in (root, system_root, parent_root, parent_system, *(() if parent is None else (parent,))):
        if not isinstance(hash, bytes) or len(hash) != HASH_SIZE:
            raise ValueError("not a hash")
    numbers = (sequence, time_ms, first_offset, durable_end, *totals)
    if len(totals) != 6 or not all(isinstance(number, int) and number >= 0 for number in numbers):
        raise TypeError("not a number")
    transactions = tuple(_decode_transaction(*row) for row in rows)
    return kind(
        sequence,
        parent,
        time_ms,
        root,
        system_root,
        parent_root,
        parent_system,
        first_offset,
        durable_end,
        DatabaseTotals(*totals),
        transactions,
        version != PAYLOAD_VERSION,
        version == PACKS_VERSION,
    )


def _encode_transaction(one: TransactionRecord) -> bytes:
    """``[actor, message, ref, changes]``, and the root where the ref is not HEAD."""
    return b"".join(
        [
            _FIRST_BYTES[_ARRAY + (4 if one.root is None else 5)],
            _NULL if one.actor is None else _text(one.actor),
            _NULL if one.message is None else _text(one.message),
            _text(one.ref),
            _head(_ARRAY, len(one.changes)),
            *_encode_changes(one.changes),
            *(() if one.root is None else (_HASH, one.root)),
        ]
    )


def _decode_transaction(
    actor: Any, message: Any, ref: Any, changes: list[Any], root: Any = None
) -> TransactionRecord:
    if not isinstance(ref, str) or not all(
        text is None or isinstance(text, str) for text in (actor, message)
    ):
        raise TypeError("not a text")
    if root is not None and (not isinstance(root, bytes) or len(root) != HASH_SIZE):
        raise ValueError("not a hash")
    return TransactionRecord(actor, message, ref, tuple(_decode_change(change) for change in changes), root)


def _encode_changes(changes: Iterable[PathChange]) -> list[bytes]:
    """Each as ``[kind number + 16 when of the system tree, path]``, and the source where there is one."""
    pieces: list[bytes] = []
    for change in changes:
        number = _KIND_NUMBERS[change.kind] + (16 if change.system else 0)
        path = "/".join(change.path).encode()
        length = len(path)
        head = _TEXT_HEADS[length] if length < 256 else _head(_TEXT, length)
        if change.source is None:
            pieces += (_PAIRS[number], head, path)
        else:
            pieces += (_TRIPLES[number], head, path, _text("/".join(change.source)))
    return pieces


def _decode_change(fields: list[Any]) -> PathChange:
    number, path = fields[0], fields[1]
    if not isinstance(number, int) or number < 0 or number & ~31:
        raise ValueError("not a kind of change")
    source = _split(fields[2]) if len(fields) > 2 else None
    return PathChange(CHANGE_KINDS[number & 15], _split(path), source, number >= 16)


def _split(text: str) -> Path:
    return tuple(text.split("/")) if text else ()


def _head(major: int, count: int) -> bytes:
    """A CBOR item's head in its shortest form (RFC 8949, section 4.2.1); by hand: imports have thousands."""
    if 0 <= count < 24:
        return _FIRST_BYTES[major + count]
    if count < 1 << 8:
        return _pack_8(major + 24, count)
    if count < 1 << 16:
        return _pack_16(major + 25, count)
    if count < 1 << 32:
        return _pack_32(major + 26, count)
    return _pack_64(major + 27, count)


def _text(value: str) -> bytes:
    encoded = value.encode()
    length = len(encoded)
    return (_TEXT_HEADS[length] if length < 256 else _head(_TEXT, length)) + encoded


_TEXT_HEADS = tuple(_head(_TEXT, length) for length in range(256))
