"""Records from elsewhere: nothing that they state is trusted; lengths have limits, contents are hashed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, TypeVar

import cbor2
from xxhash import xxh3_64_intdigest

from svc.errors import CorruptRecord, RefusedFile, SvcError, TruncatedFile
from svc.hashing import Hash, ObjectKind, hash_object
from svc.log import ScannedRecord
from svc.log.framing import RECORD_HEADER, RECORD_HEADER_SIZE, RECORD_MAGIC
from svc.objects.chunking import MAXIMUM_CHUNK
from svc.objects.codecs import Codec, decompress
from svc.tree.codec import MAXIMUM_NODE_BYTES
from svc.tree.node import MAXIMUM_NUMBER

__all__ = ["LARGEST_CONTENT", "FilePlace", "ObjectSource", "check_record", "decoded", "read_verified"]

T = TypeVar("T")

_MAGIC = int.from_bytes(RECORD_MAGIC, "little")

LARGEST_CONTENT = {
    ObjectKind.CHUNK: MAXIMUM_CHUNK,
    ObjectKind.FILE_RECORD: 256 * 1024 * 1024,
    ObjectKind.NODE: MAXIMUM_NODE_BYTES,
    ObjectKind.DELETION: 4 * 1024 * 1024,
    ObjectKind.COMMIT: 64 * 1024,
}
"""Most bytes of uncompressed content that a record of a sequence may state, by kind."""


class FilePlace(NamedTuple):
    """Where in a file an object lies, and what its record's header says.

    ``ordinal`` counts from 0; ``offset`` is the header's; ``kind`` is an ``ObjectKind``, ``system`` a flag.
    """

    ordinal: int
    offset: int
    stored_length: int
    raw_length: int
    kind: int
    system: int
    codec: int


def decoded(decode: Callable[[bytes], T], payload: bytes, what: str) -> T:
    """Returns what a payload from elsewhere decodes to; raises ``CorruptRecord`` or ``UnsupportedFormat``."""
    try:
        return decode(payload)
    except SvcError:
        raise
    except (cbor2.CBORError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise CorruptRecord(f"{what} is malformed.") from error


class ObjectSource(Protocol):
    """Objects that come from elsewhere, in an order in which none stands before one that it names.

    ``size`` is bytes of their records, for progress; ``objects`` counts chunks, file records and nodes.
    """

    size: int
    objects: int

    def find(self, hash: Hash) -> FilePlace | None:
        """Returns where an object lies, or None when it is not among them."""
        ...

    def ordinal(self, hash: Hash) -> int | None:
        """Returns which object has an identity, from 0, or None."""
        ...

    def content(self, hash: Hash, place: FilePlace) -> bytes:
        """Returns an object's content, verified down to its identity; raises CorruptRecord."""
        ...

    def records(self) -> Iterator[ScannedRecord]:
        """Yields all records in order, with payloads whose checksums hold."""
        ...


def check_record(record: ScannedRecord) -> None:
    """Makes sure that a record states nothing that none may state, before anything of it is read.

    ``RefusedFile``: more content than its kind may have. ``CorruptRecord``: codec, lengths or time can't be.
    """
    if record.codec not in (Codec.RAW, Codec.ZSTD):
        raise CorruptRecord(f"a record names codec {record.codec}.", offset=record.offset)
    if record.codec == Codec.RAW and record.raw_length != record.stored_length:
        raise CorruptRecord("a record states two lengths.", offset=record.offset)
    limit = LARGEST_CONTENT[record.kind]
    # What does not shrink is stored raw, so a stored form is never longer than its content.
    if max(record.raw_length, record.stored_length) > limit:
        raise RefusedFile(
            f"A record states more content than its kind may have ({limit} bytes).", offset=record.offset
        )
    if record.time_ms > MAXIMUM_NUMBER:
        raise CorruptRecord("a record states an impossible time.", offset=record.offset)


def read_verified(read: Callable[[int, int], bytes], hash: Hash, place: FilePlace) -> bytes:
    """Returns the content of a record, compared with what its place says in every field."""
    length = RECORD_HEADER_SIZE + place.stored_length
    data = read(place.offset, length)
    if len(data) != length:
        raise TruncatedFile("it ends within a record.", offset=place.offset)
    fields = RECORD_HEADER.unpack_from(data)
    expected = (
        _MAGIC,
        place.kind,
        place.system,
        place.codec,
        0,
        place.stored_length,
        place.raw_length,
        fields[7],
        hash,
    )
    payload = data[RECORD_HEADER_SIZE:]
    if fields[:9] != expected or fields[10] != xxh3_64_intdigest(data[: RECORD_HEADER_SIZE - 8]):
        raise CorruptRecord("a record's header is not as it must be.", offset=place.offset)
    if fields[9] != xxh3_64_intdigest(payload):
        raise CorruptRecord("a record's payload fails its checksum.", offset=place.offset)
    content = decompress(place.codec, payload, place.raw_length)
    if hash_object(ObjectKind(place.kind), content, bool(place.system)) != hash:
        raise CorruptRecord("a record's content does not have its hash.", offset=place.offset)
    return content
