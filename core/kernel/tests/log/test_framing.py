"""Records and headers keep what was put into them, and notice every change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from svc.errors import (
    CorruptRecord,
    ForeignFile,
    PayloadTooLarge,
    SvcError,
    TruncatedFile,
    UnsupportedFormat,
)
from svc.hashing import ObjectKind
from svc.log import RECORD_HEADER_SIZE, encode_record, encode_void, record_size
from svc.log.framing import (
    FileHeader,
    decode_file_header,
    decode_header,
    decode_record,
    encode_file_header,
)

HASH = bytes(range(32))
HEADER = encode_file_header(FileHeader(bytes(16), 5))

kinds = st.sampled_from([kind for kind in ObjectKind if kind is not ObjectKind.VOID])


class Huge(bytes):
    """Says that it is larger than a record may be."""

    def __len__(self):
        return 2**32


@given(
    kind=kinds,
    hash=st.binary(min_size=32, max_size=32),
    payload=st.binary(max_size=300),
    codec=st.integers(0, 255),
    raw_length=st.none() | st.integers(0, 2**32 - 1),
    time_ms=st.integers(0, 2**64 - 1),
    system=st.booleans(),
)
def test_a_record_comes_back_as_it_was_encoded(kind, hash, payload, codec, raw_length, time_ms, system):
    framed = encode_record(
        kind, hash, payload, codec=codec, raw_length=raw_length, time_ms=time_ms, system=system
    )
    assert len(framed) == record_size(len(payload)) and len(framed) % 8 == 0
    record = decode_record(framed, 0, len(payload))
    assert (record.kind, record.hash, record.payload) == (kind, hash, payload)
    assert (record.codec, record.time_ms, record.system) == (codec, time_ms, system)
    assert record.raw_length == (len(payload) if raw_length is None else raw_length)


@given(payload=st.binary(min_size=1, max_size=40), data=st.data())
def test_any_flipped_bit_of_header_or_payload_is_noticed(payload, data):
    framed = bytearray(encode_record(ObjectKind.NODE, HASH, payload, time_ms=1))
    bit = data.draw(st.integers(0, (RECORD_HEADER_SIZE + len(payload)) * 8 - 1))
    framed[bit // 8] ^= 1 << bit % 8
    with pytest.raises((CorruptRecord, UnsupportedFormat)) as caught:
        decode_record(bytes(framed), 4096, len(payload))
    assert caught.value.details["offset"] == 4096


def test_a_flipped_bit_of_the_padding_harms_nobody():
    framed = bytearray(encode_record(ObjectKind.NODE, HASH, b"abc", time_ms=1))
    framed[-1] ^= 1
    assert decode_record(bytes(framed), 0, 3).payload == b"abc"


def test_a_record_of_another_length_than_the_index_says_is_refused():
    framed = encode_record(ObjectKind.CHUNK, HASH, b"x" * 16, time_ms=1)
    with pytest.raises(CorruptRecord, match="has 16 bytes where 8"):
        decode_record(framed, 0, 8)
    with pytest.raises(TruncatedFile):
        decode_record(framed, 0, 17)


def test_a_memoryview_is_taken_as_payload():
    assert encode_record(ObjectKind.CHUNK, HASH, memoryview(b"abc"), time_ms=1) == encode_record(
        ObjectKind.CHUNK, HASH, b"abc", time_ms=1
    )


def test_what_does_not_fit_into_a_record_is_refused():
    with pytest.raises(PayloadTooLarge):
        encode_record(ObjectKind.CHUNK, HASH, Huge(), time_ms=1)
    with pytest.raises(PayloadTooLarge):
        encode_record(ObjectKind.CHUNK, HASH, b"", raw_length=2**32, time_ms=1)
    with pytest.raises(PayloadTooLarge):
        encode_void(2**32, time_ms=1)
    with pytest.raises(ValueError, match="32 bytes"):
        encode_record(ObjectKind.CHUNK, HASH[:-1], b"", time_ms=1)
    with pytest.raises(ValueError, match="out of range"):
        encode_record(ObjectKind.CHUNK, HASH, b"", time_ms=-1)


def test_a_void_is_whole_whatever_lies_in_it():
    framed = encode_void(24, time_ms=7) + b"anything at all, or zero"
    record = decode_record(framed, 0, 24)
    assert record.kind is ObjectKind.VOID
    header = decode_header(framed)
    assert header is not None and header.accepts(bytes(24))


def test_a_valid_record_of_an_unknown_kind_is_called_newer_not_damaged():
    framed = encode_record(9, HASH, b"later", time_ms=1)
    with pytest.raises(UnsupportedFormat, match="kind 9"):
        decode_record(framed, 128, 5)


def test_the_file_header_comes_back():
    header = FileHeader(HASH[:16], 1_790_000_000_000)
    assert decode_file_header(encode_file_header(header), "x") == header


def changed(position: int, value: bytes, *, checksum: bool = True) -> bytes:
    data = bytearray(HEADER)
    data[position : position + len(value)] = value
    if checksum:
        data[120:] = xxh3_64_intdigest(bytes(data[:120])).to_bytes(8, "little")
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", ForeignFile, "is empty"),
        (b"\x89PNG\r\n\x1a\n" + bytes(200), ForeignFile, "not an svc database"),
        (b"hello", ForeignFile, "not an svc database"),
        (HEADER[:3], TruncatedFile, "only 3 of the 128"),
        (HEADER[:127], TruncatedFile, "only 127 of the 128"),
        (changed(12, b"\x01\x02\x03\x04"), ForeignFile, "another byte order"),
        (changed(8, b"\x02\x00"), UnsupportedFormat, r"version 2\.0; this program reads version 1\.0"),
        (changed(8, b"\x02\x00", checksum=False), UnsupportedFormat, r"version 2\.0"),
        (changed(8, b"\x00\x00"), UnsupportedFormat, r"version 0\.0"),
        (changed(20, b"\x01"), UnsupportedFormat, "flags 0x1"),
        (changed(40, b"\x02"), UnsupportedFormat, "algorithm 2"),
        (changed(16, b"\x88"), UnsupportedFormat, "header length 136"),
        (changed(30, b"\x01", checksum=False), CorruptRecord, "fails its checksum"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_for_its_own_reason(data, error, message):
    with pytest.raises(error, match=message) as caught:
        decode_file_header(data, "x.svcdb")
    assert type(caught.value) is error


def test_a_newer_minor_version_is_read():
    assert decode_file_header(changed(10, b"\x07"), "x").minor == 7


@given(bit=st.integers(0, 128 * 8 - 1))
def test_any_flipped_bit_of_the_file_header_is_noticed(bit):
    data = bytearray(HEADER)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SvcError):
        decode_file_header(bytes(data), "x")
