"""Rotten and forged files are refused in words; nothing crashes, and no answer is wrong."""

from __future__ import annotations

import struct
from contextlib import suppress
from random import Random
from zlib import crc32

import pytest
from svc_query.segments import TermIndexReader, unused_files
from svc_query.segments.layout import HEADER_SIZE
from svc_query.segments.manifest import decode_manifest
from svc_query.segments.segment import READ_WHOLE

from svc.errors import CorruptRecord

QUESTIONS = (
    lambda reader: reader.verify(),
    lambda reader: reader.postings(b"kind1"),
    lambda reader: reader.count(b"title00001"),
    lambda reader: reader.postings_range(b"a", b"z"),
    lambda reader: reader.count_range(b"title1", None),
    lambda reader: list(reader.scan()),
    lambda reader: list(reader.scan(reverse=True)),
    lambda reader: list(reader.terms()),
    lambda reader: reader.postings_of_any([b"kind1", b"kind2"]),
    lambda reader: reader.postings_of_all([b"kind1", b"kind2"]),
    lambda reader: reader.documents(),
)


def fill(index, documents):
    random = Random(1)
    for number in range(documents):
        index.add(number, [b"kind%d" % (number % 3), b"title%05d" % random.randint(0, 99_999)])
    index.writer.flush()
    (path,) = index.directory.iterdir()
    return path


def open_and_read(index):
    reader = index.reader()
    try:
        reader.verify()
    finally:
        reader.close()


def test_every_bit_that_flips_is_found(index):
    path = fill(index, 60)
    whole = path.read_bytes()
    assert len(whole) < 4_000
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        with pytest.raises(CorruptRecord) as caught:
            open_and_read(index)
        assert caught.value.details["file"] == path.name
    path.write_bytes(whole)
    open_and_read(index)


def test_a_file_that_was_cut_or_grew_is_found(index):
    path = fill(index, 60)
    whole = path.read_bytes()
    for size in (0, 1, HEADER_SIZE - 1, HEADER_SIZE, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptRecord):
            open_and_read(index)
    path.write_bytes(whole + b"\0")
    with pytest.raises(CorruptRecord):
        open_and_read(index)


def test_a_mapped_file_is_verified_where_it_is_read(index):
    path = fill(index, 20_000)
    whole = path.read_bytes()
    assert len(whole) > READ_WHOLE
    random = Random(2)
    for place in random.sample(range(len(whole)), 60):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(CorruptRecord):
            open_and_read(index)
        # A lookup either meets the damage or answers as before.
        try:
            reader = index.reader()
        except CorruptRecord:
            continue
        for term in random.sample(sorted(index.model), 20):
            with suppress(CorruptRecord):
                assert set(reader.postings(term)) == index.model[term]
        reader.close()


def test_forged_files_whose_checksums_hold_are_refused_or_answered(index):
    path = fill(index, 200)
    whole = path.read_bytes()
    random = Random(3)
    refused = 0
    for _ in range(600):
        forged = bytearray(whole)
        for _ in range(random.randint(1, 3)):
            forged[random.randrange(HEADER_SIZE, len(whole))] = random.choice([0, 1, 0x7F, 0xFF])
        path.write_bytes(seal(forged))
        try:
            reader = index.reader()
        except CorruptRecord:
            refused += 1
            continue
        for question in QUESTIONS:
            try:
                question(reader)
            except CorruptRecord:
                refused += 1
        reader.close()
    assert refused > 100


def seal(data):
    """Makes the checksums of a forged segment right, where its table of contents still tells their places."""
    at, length = struct.unpack_from("<QQ", data, 40)
    blocks, groups = struct.unpack_from("<II", data, at)
    column = at + 16
    offsets, lengths = column, column + 8 * (2 * blocks + 1)
    checksums = lengths + 4 * blocks
    group_offsets = checksums + 8 * blocks
    group_lengths = group_offsets + 8 * groups
    places = [
        (offsets, lengths, checksums, blocks),
        (group_offsets, group_lengths, group_lengths + 4 * groups, groups),
    ]
    for offsets_at, lengths_at, checksums_at, count in places:
        for number in range(min(count, 1_000)):
            if max(offsets_at + 8 * number + 8, checksums_at + 4 * number + 4) > len(data):
                break
            (offset,) = struct.unpack_from("<Q", data, offsets_at + 8 * number)
            (size,) = struct.unpack_from("<I", data, lengths_at + 4 * number)
            struct.pack_into("<I", data, checksums_at + 4 * number, crc32(data[offset : offset + size]))
    struct.pack_into("<I", data, 56, crc32(data[at : at + length]))
    struct.pack_into("<I", data, 60, crc32(data[:60]))
    return data


def test_sealing_a_file_that_is_whole_changes_nothing(index):
    path = fill(index, 200)
    assert seal(bytearray(path.read_bytes())) == path.read_bytes()


def test_a_segment_in_place_of_another_is_refused(index):
    first = fill(index, 60)
    stored = first.read_bytes()
    index.add(1_000, [b"other"])
    index.writer.flush()
    (second,) = set(index.directory.iterdir()) - {first}
    second.write_bytes(stored)
    with pytest.raises(CorruptRecord, match="another one"):
        index.reader()


NOT_MANIFESTS = (b"", b"\x00", b"\xff" * 10, b"\x92\x02\x90", b"\x92\x01\x91\x97\xa7../evil\0\0\0\0\0\0")


@pytest.mark.parametrize("manifest", NOT_MANIFESTS)
def test_a_manifest_that_is_none_is_refused(tmp_path, manifest):
    with pytest.raises(CorruptRecord):
        TermIndexReader(tmp_path, manifest, ordered=True)
    with pytest.raises(CorruptRecord):
        unused_files(tmp_path, manifest)
    with pytest.raises(CorruptRecord):
        decode_manifest(manifest)


def test_a_merge_of_a_damaged_segment_leaves_the_others_alone(index):
    path = fill(index, 60)
    for number in range(7):
        index.add(100 + number, [b"more"])
        index.writer.flush()
    damaged = bytearray(path.read_bytes())
    damaged[HEADER_SIZE + 10] ^= 1
    path.write_bytes(damaged)
    plan = index.writer.merge_plan(index.manifest, index.dead)
    with pytest.raises(CorruptRecord):
        list(plan.run())
    assert unused_files(index.directory, index.manifest) == []
