"""The format is what it was: stored bytes are compared with what is encoded now, and with the docs."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import pytest
import zstandard

from svc.hashing import ObjectKind, hash_object
from svc.log import FIRST, Log, encode_record, encode_void
from svc.log.framing import (
    FILE_HEADER,
    RECORD_HEADER,
    FileHeader,
    clean_end_commit,
    decode_file_header,
    decode_record,
    encode_clean_end,
    encode_file_header,
)

GOLDEN = Path(__file__).parent / "golden" / "log-1.0.json"
PAGE = Path(__file__).parents[4] / "docs" / "format" / "log.md"

TIME_MS = 1_790_000_000_123
DATABASE_ID = bytes.fromhex("00112233445546778899aabbccddeeff")
CONTENTS = {
    ObjectKind.CHUNK: b"hello, world\n",
    ObjectKind.FILE_RECORD: b"\x83\x01\x02\x03",
    ObjectKind.NODE: b"\x80",
    ObjectKind.DELETION: b"\xa0",
    ObjectKind.COMMIT: b"\x84\x01\x01\xf6\x00",
}
REPEATED = b"the same words again and again, " * 8


def load():
    return json.loads(GOLDEN.read_text())


def encoded(stored: dict[str, str]) -> dict[str, bytes]:
    """What this program makes of the inputs that the golden file was made from."""
    vectors = {"file header": encode_file_header(FileHeader(DATABASE_ID, TIME_MS))}
    for kind, content in CONTENTS.items():
        hash = hash_object(kind, content)
        vectors[f"{kind.name.lower()} raw"] = encode_record(kind, hash, content, time_ms=TIME_MS)
    vectors["system node raw"] = encode_record(
        ObjectKind.NODE, hash_object(ObjectKind.NODE, b"\x80", True), b"\x80", time_ms=TIME_MS, system=True
    )
    compressed = bytes.fromhex(stored["zstd payload"])
    for kind in CONTENTS:
        vectors[f"{kind.name.lower()} zstd"] = encode_record(
            kind, hash_object(kind, REPEATED), compressed, codec=1, raw_length=len(REPEATED), time_ms=TIME_MS
        )
    vectors["void"] = encode_void(56, time_ms=TIME_MS) + bytes(56)
    before = sum(map(len, vectors.values()))
    vectors["clean end"] = encode_clean_end(
        hash_object(ObjectKind.COMMIT, CONTENTS[ObjectKind.COMMIT]),
        database_id=DATABASE_ID,
        offset=before,
        time_ms=TIME_MS,
    )
    return vectors


def test_a_clean_end_mark_counts_only_where_it_was_written_and_in_its_own_database():
    vectors = encoded(load())
    mark = vectors["clean end"]
    offset = sum(map(len, vectors.values())) - len(mark)
    commit = hash_object(ObjectKind.COMMIT, CONTENTS[ObjectKind.COMMIT])
    assert clean_end_commit(mark, database_id=DATABASE_ID, offset=offset) == commit
    assert clean_end_commit(mark, database_id=DATABASE_ID, offset=offset + 8) is None
    assert clean_end_commit(mark, database_id=bytes(16), offset=offset) is None
    assert clean_end_commit(mark[:-1], database_id=DATABASE_ID, offset=offset) is None
    assert clean_end_commit(vectors["void"][:72], database_id=DATABASE_ID, offset=offset) is None
    for position in range(len(mark)):
        flipped = bytearray(mark)
        flipped[position] ^= 1
        assert clean_end_commit(bytes(flipped), database_id=DATABASE_ID, offset=offset) is None, position


def test_a_clean_end_mark_is_a_void_to_whoever_does_not_know_it():
    record = decode_record(encoded(load())["clean end"], 0, 0)
    assert (record.kind, record.system, record.codec, record.payload) == (ObjectKind.VOID, False, 0, b"")


def test_every_kind_of_record_is_encoded_byte_for_byte_as_before():
    stored = load()
    made = {name: value.hex() for name, value in encoded(stored).items()}
    assert made | {"zstd payload": stored["zstd payload"]} == stored


def test_a_file_of_golden_records_opens_and_reads_back(path):
    stored = {name: bytes.fromhex(value) for name, value in load().items()}
    compressed = stored.pop("zstd payload")
    path.write_bytes(b"".join(stored.values()))
    assert decode_file_header(path.read_bytes()[:128], "x") == FileHeader(DATABASE_ID, TIME_MS)
    with Log.open(path) as log:
        recovery = log.recover(FIRST)
        assert (recovery.records, recovery.cut_bytes) == (len(stored) - 1, 0)
        assert (log.database_id, log.created_ms) == (DATABASE_ID, TIME_MS)
        for scanned in log.scan(payloads=True, verify=True):
            if scanned.codec == 1:
                assert scanned.payload == compressed
                content = zstandard.decompress(scanned.payload)
            else:
                content = scanned.payload
            assert len(content) == scanned.raw_length and scanned.time_ms == TIME_MS
            if scanned.kind is not ObjectKind.VOID:
                assert hash_object(scanned.kind, content, scanned.system) == scanned.hash
    assert decode_record(stored["system node raw"], 0, 1).system


TYPES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}


def layout(title: str) -> str:
    """The struct format that an offset table of the page describes."""
    section = PAGE.read_text().split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\w+) \| (\w[^|]*)\|", section, re.MULTILINE)
    assert rows, title
    expected = 0
    form = "<"
    for offset, size, kind, field in rows:
        assert int(offset) == expected, f"{title}: {field}"
        expected += int(size)
        if kind in TYPES:
            assert struct.calcsize("<" + TYPES[kind]) == int(size)
            form += TYPES[kind]
        elif field.startswith("reserved"):
            form += f"{size}x"
        else:
            form += f"{size}s"
    return form


@pytest.mark.parametrize(
    ("title", "form"),
    [
        ("File header", FILE_HEADER.format + "Q"),
        # One reserved byte is a number of its own in the program.
        ("Record header", RECORD_HEADER.format),
    ],
)
def test_the_offset_tables_of_the_docs_are_those_of_the_program(title, form):
    assert layout(title) == form


def test_the_docs_show_the_golden_vectors():
    page = re.sub(r"\s", "", PAGE.read_text())
    for name, value in load().items():
        assert value in page, name
