"""The form of a pack of commits: golden bytes, what comes back, what is refused."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.database.packed_commits import (
    RANGE,
    commit_identity,
    decode_pack,
    encode_pack,
    may_be_packed,
    pack_path,
)
from svc.errors import CorruptRecord

FORMAT = Path(__file__).parents[4] / "docs" / "format" / "golden"
FIRST_COMMIT = bytes.fromhex((FORMAT / "commit.hex").read_text())


def test_the_golden_pack_is_what_this_program_writes_and_reads() -> None:
    golden = bytes.fromhex((FORMAT / "commit-pack.hex").read_text())
    payloads = {1: FIRST_COMMIT, 3: b"\x84\x01\x03\xf6\x00"}
    assert encode_pack(payloads) == golden
    assert decode_pack(golden) == payloads
    assert golden[:12] == b"SVCPACK\x01" + struct.pack("<I", 2)


def test_a_range_has_one_pack_named_by_its_last_commit_which_is_in_none() -> None:
    assert RANGE == 128
    assert pack_path(1) == pack_path(127) == ("packed-commits", "00000000000000000128")
    assert pack_path(129) == ("packed-commits", "00000000000000000256")
    assert [number for number in range(400) if not may_be_packed(number)] == [0, 128, 256, 384]


@given(
    st.integers(0, 2**50),
    st.dictionaries(st.integers(1, RANGE - 1), st.binary(max_size=300), min_size=1, max_size=20),
)
def test_what_is_packed_comes_back_in_order(number: int, contents: dict[int, bytes]) -> None:
    payloads = {number * RANGE + place: content for place, content in contents.items()}
    found = decode_pack(encode_pack(payloads))
    assert found == payloads
    assert list(found) == sorted(payloads)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        encode_pack({1: b"one", 2: b"two"})[:-1],
        encode_pack({1: b"one", 2: b"two"}) + b"more",
        encode_pack({1: b"one", 2: b"two"})[:20],
        b"SVCPACK\x02" + encode_pack({1: b"one"})[8:],
        encode_pack({}),
        encode_pack({128: b"the last of a range"}),
        encode_pack({127: b"of two", 129: b"ranges"}),
        b"SVCPACK\x01" + struct.pack("<IQIQI", 2, 2, 1, 1, 1) + b"ab",
        b"SVCPACK\x01" + struct.pack("<I", 2**32 - 1),
    ],
)
def test_anything_else_is_no_pack(content: bytes) -> None:
    with pytest.raises(CorruptRecord):
        decode_pack(content)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(content: bytes) -> None:
    for given_bytes in (content, b"SVCPACK\x01" + content):
        try:
            decode_pack(given_bytes)
        except CorruptRecord:
            continue


def test_a_packed_commit_keeps_the_identity_of_its_record() -> None:
    from svc.hashing import ObjectKind, hash_object

    assert commit_identity(FIRST_COMMIT) == hash_object(ObjectKind.COMMIT, FIRST_COMMIT)
