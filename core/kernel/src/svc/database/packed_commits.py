"""Old commit records in packs: files of the system tree, each of which holds the commits of one range.

A commit record that stands alone between voids keeps a block of the disk; in a pack it takes some hundred
bytes. A pack holds payloads as they were: every commit keeps its identity (docs/format/commit.md).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from svc.database.version import Version
from svc.errors import CorruptRecord
from svc.hashing import Hash, ObjectKind, hash_object
from svc.objects.store import ObjectStore
from svc.paths import Path

__all__ = [
    "LARGEST_PACKED",
    "PACKS_PATH",
    "RANGE",
    "PackedCommits",
    "commit_identity",
    "decode_pack",
    "encode_pack",
    "last_of_range",
    "may_be_packed",
    "pack_path",
]

PACKS_PATH = ("packed-commits",)
RANGE = 128
"""Commits of a range. The last one of each stays in the log: records begin behind it for certain."""

LARGEST_PACKED = 16 * 1024
"""Bytes of the longest payload that is packed; a longer one fills blocks of its own."""

_MAGIC = b"SVCPACK\x01"
_HEADER = struct.Struct("<8sI")
_ROW = struct.Struct("<QI")
_KEPT = 4


def may_be_packed(sequence: int) -> bool:
    """Whether a pack may hold a commit: not the last one of a range."""
    return sequence > 0 and sequence % RANGE != 0


def pack_path(sequence: int) -> Path:
    """Returns the path in the system tree of the pack whose range a commit is of."""
    return (*PACKS_PATH, f"{last_of_range(sequence):020d}")


def last_of_range(sequence: int) -> int:
    """Returns the number of the last commit of the range that a commit is of."""
    return -(-sequence // RANGE) * RANGE


def encode_pack(payloads: Mapping[int, bytes]) -> bytes:
    """Returns a pack of commit records' payloads, by the commits' numbers; all are of one range."""
    numbers = sorted(payloads)
    return b"".join(
        [
            _HEADER.pack(_MAGIC, len(numbers)),
            *[_ROW.pack(number, len(payloads[number])) for number in numbers],
            *[payloads[number] for number in numbers],
        ]
    )


def decode_pack(content: bytes) -> dict[int, bytes]:
    """Returns the payloads of a pack by the commits' numbers, in their order."""
    try:
        magic, count = _HEADER.unpack_from(content)
        rows = [_ROW.unpack_from(content, _HEADER.size + number * _ROW.size) for number in range(count)]
    except struct.error as error:
        raise _not_a_pack() from error
    position = _HEADER.size + count * _ROW.size
    payloads: dict[int, bytes] = {}
    before = 0
    for sequence, length in rows:
        if not before < sequence or not may_be_packed(sequence):
            raise _not_a_pack()
        payloads[sequence] = content[position : position + length]
        position += length
        before = sequence
    ranges = {pack_path(sequence) for sequence in payloads}
    if magic != _MAGIC or position != len(content) or len(ranges) != 1:
        raise _not_a_pack()
    return payloads


def _not_a_pack() -> CorruptRecord:
    return CorruptRecord("A pack of commits is not of the expected form.")


class PackedCommits:
    """Reads packs, and keeps the last few; used by any thread."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        # Replaced as a whole, so that no lock is needed; the newest is last.
        self._kept: dict[Hash, dict[int, bytes]] = {}

    def beside(self, system_root: Hash, sequence: int) -> Mapping[int, bytes]:
        """Returns the packed payloads of a commit's range by their numbers, in order; empty for none."""
        version = Version(self._objects, system_root)
        entry = version.get(pack_path(sequence))
        if entry is None:
            return {}
        payloads = self._kept.get(entry.hash)
        if payloads is None:
            try:
                payloads = decode_pack(version.read_all(entry))
            except CorruptRecord as error:
                if error.details.get("lost"):
                    return {}  # a repair gave it up, and said so
                raise
            kept = [*self._kept.items(), (entry.hash, payloads)]
            self._kept = dict(kept[-_KEPT:])
        return payloads

    def ranges(self, system_root: Hash) -> set[int]:
        """Returns the number of the last commit of each range that has a pack; raises as ``beside``."""
        version = Version(self._objects, system_root)
        directory = version.get(PACKS_PATH)
        if directory is None:
            return set()
        return {int(name) for name, _ in version.entries(PACKS_PATH)}


def commit_identity(payload: bytes) -> Hash:
    """Returns the identity of a commit's record."""
    return hash_object(ObjectKind.COMMIT, payload)
