"""A file record says what a larger file is made of, in one way only."""

from __future__ import annotations

from pathlib import Path

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from svc.errors import CorruptRecord, SvcError, UnsupportedFormat
from svc.hashing import ObjectKind, hash_object
from svc.objects.file_record import FileRecord

GOLDEN = Path(__file__).parents[4] / "docs" / "format" / "golden" / "file-record.hex"
GOLDEN_0 = GOLDEN.with_name("file-record-v0.hex")


def example() -> FileRecord:
    chunk = hash_object(ObjectKind.CHUNK, b"hello", system=True)
    return FileRecord(5, hash_object(ObjectKind.CHUNK, b"hello"), (chunk,), (5,))


def test_the_payload_is_that_of_the_format_page() -> None:
    assert example().encode().hex() == "".join(GOLDEN.read_text().split())


def test_the_payload_of_version_0_is_that_of_the_format_page_and_is_read() -> None:
    payload = bytes.fromhex("".join(GOLDEN_0.read_text().split()))
    record = FileRecord.decode(payload)
    assert record == replace(example(), content_hash=None)
    assert record.version == 0
    assert record.encode() == payload


def test_a_record_comes_back_and_finds_its_chunks() -> None:
    record = FileRecord(10, b"h" * 32, (b"a" * 32, b"b" * 32, b"c" * 32), (4, 3, 3), {"k": [1]})
    assert FileRecord.decode(record.encode()) == record
    assert [record.chunks_from(start) for start in (0, 3, 4, 6, 7, 9)] == [
        (0, 0), (0, 3), (1, 0), (1, 2), (2, 0), (2, 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {},
        [],
        [1],
        [0],
        [0, 5, b"h" * 32, b"a" * 32, b"\5\0\0\0", {}],
        [0, 5, None, b"a" * 32, b"\5\0\0\0", {}],
        [0, 6, b"a" * 32, b"\5\0\0\0", {}],
        [0, 5, b"a" * 33, b"\5\0\0\0", {}],
        [1, 5, b"a" * 32, b"\5\0\0\0", {}],
        [1, 5, None, b"a" * 32, b"\5\0\0\0", {}],
        [1, 5, b"h" * 32, b"a" * 32, b"\5\0\0\0"],
        [1, 6, b"h" * 32, b"a" * 32, b"\5\0\0\0", {}],
        [1, 5, b"h" * 31, b"a" * 32, b"\5\0\0\0", {}],
        [1, 5, b"h" * 32, b"a" * 33, b"\5\0\0\0", {}],
        [1, 5, b"h" * 32, b"a" * 32, b"\5\0\0", {}],
        [1, 5, "h" * 32, b"a" * 32, b"\5\0\0\0", {}],
    ],
)
def test_a_record_that_contradicts_itself_is_corrupt(fields: object) -> None:
    with pytest.raises(CorruptRecord):
        FileRecord.decode(cbor2.dumps(fields))


def test_a_newer_record_is_told_from_a_damaged_one() -> None:
    with pytest.raises(UnsupportedFormat):
        FileRecord.decode(cbor2.dumps([2, "what comes later"]))


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_else(payload: bytes) -> None:
    try:
        FileRecord.decode(payload)
    except SvcError:
        return
