"""The format is what it was, and what its page says: who knows the page alone can read the golden files."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from zlib import crc32

import pytest
from pyroaring import BitMap
from svc_query.api import MAXIMUM_TERM_BYTES
from svc_query.segments import SegmentEntry, TermIndexReader, TermIndexWriter, layout
from svc_query.segments.manifest import Manifest, encode_manifest
from svc_query.segments.segment import READ_WHOLE

DOCS = Path(__file__).parents[4] / "docs" / "format"
PAGE = (DOCS / "index-segments.md").read_text(encoding="utf-8")
ENTRY = SegmentEntry("00112233445566ff.seg", 4_242, 300, 7, 65_543, 200, 900)
DOCUMENTS = {
    **{number: [b"term-all"] for number in range(100, 140)},
    3: [b"term-one", b"term-two", b""],
    70_000: [b"term-two"],
}


def golden(name):
    return bytes.fromhex((DOCS / "golden" / f"{name}.hex").read_text())


@pytest.fixture(params=["ordered", "unordered"])
def kind(request):
    return request.param


def written(directory, *, ordered):
    writer = TermIndexWriter(directory, None, ordered=ordered)
    for number in sorted(DOCUMENTS):
        writer.add(number, DOCUMENTS[number])
    writer.flush()
    return writer


def test_a_segment_is_written_as_it_was(tmp_path, kind):
    written(tmp_path, ordered=kind == "ordered")
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == golden(f"index-segment-{kind}")


def test_a_segment_is_read_as_it_was(tmp_path, kind):
    writer = written(tmp_path, ordered=kind == "ordered")
    (path,) = tmp_path.iterdir()
    path.write_bytes(golden(f"index-segment-{kind}"))
    reader = TermIndexReader(tmp_path, writer.manifest, ordered=kind == "ordered")
    assert {term: list(numbers) for term, numbers in reader.scan()} == {
        b"": [3], b"term-all": list(range(100, 140)), b"term-one": [3], b"term-two": [3, 70_000],
    }  # fmt: skip
    reader.close()


def test_the_page_is_enough_to_read_a_segment(kind):
    data = golden(f"index-segment-{kind}")
    magic, number, flags, documents, terms, postings, at, length, contents_sum, header_sum = struct.unpack(
        "<8sIIQQQQQII", data[:64]
    )
    assert (magic, number, flags) == (b"svcterms", 1, 1 if kind == "ordered" else 0)
    assert (documents, terms, postings, at + length) == (42, 4, 44, len(data))
    assert header_sum == crc32(data[:60])
    assert contents_sum == crc32(data[at:])
    blocks, groups, fence_bytes, document_bytes = struct.unpack_from("<IIII", data, at)
    assert (blocks, groups) == (1, 1 if kind == "ordered" else 0)
    columns = struct.unpack_from(
        f"<{blocks}Q{blocks + 1}Q{3 * blocks}I{groups}Q{3 * groups + 1}I", data, at + 16
    )
    offset, before, behind, size, checksum, fence_end = columns[:6]
    assert (offset, before, behind, checksum, fence_end) == (64, 0, 44, crc32(data[64 : 64 + size]), 0)
    assert BitMap.deserialize(data[-document_bytes:]) == BitMap(DOCUMENTS)
    assert fence_bytes == 0
    assert read_block(data[64 : 64 + size]) == {
        b"": BitMap([3]),
        b"term-all": BitMap(range(100, 140)),
        b"term-one": BitMap([3]),
        b"term-two": BitMap([3, 70_000]),
    }
    if groups:
        group_offset, group_length, group_sum, first, end = columns[6:]
        stored = data[group_offset : group_offset + group_length]
        assert (crc32(stored), first, end) == (group_sum, 0, 1)
        assert BitMap.deserialize(stored) == BitMap(DOCUMENTS)


def read_block(block):
    count, flags, prefix_length = struct.unpack_from("<HHH", block)
    assert flags == 0
    prefix, at = block[6 : 6 + prefix_length], 6 + prefix_length
    ends, counts, payload_ends = (
        struct.unpack_from(f"<{count}H", block, at + 2 * count * column) for column in range(3)
    )
    at += 6 * count
    found, start, seen, payload = {}, 0, 0, 0
    for end, total, payload_end in zip(ends, counts, payload_ends, strict=True):
        stored = block[at + ends[-1] + payload : at + ends[-1] + payload_end]
        raw = len(stored) == 4 * (total - seen)
        numbers = BitMap(struct.unpack(f"<{total - seen}I", stored)) if raw else BitMap.deserialize(stored)
        assert len(numbers) == total - seen
        found[prefix + block[at + start : at + end]] = numbers
        start, seen, payload = end, total, payload_end
    return found


def test_a_manifest_is_written_as_the_page_says():
    (shown,) = re.findall(r"^    ([0-9a-f ]{40,})$", PAGE, re.MULTILINE)
    assert encode_manifest(Manifest(segments=(ENTRY,))) == bytes.fromhex(shown)


def test_the_page_has_the_limits_of_the_code():
    for text in (
        f"1 to {layout.BLOCK_TERMS} terms",
        f"its postings take {layout.BLOCK_BYTES >> 10} KiB",
        f"have {layout.GROUP_POSTINGS:,} postings together",
        f"from {layout.RAW_POSTINGS} documents on",
        f"up to {READ_WHOLE >> 10} KiB, which is read whole",
        f"at most {MAXIMUM_TERM_BYTES:,} bytes",
    ):
        assert text in PAGE
