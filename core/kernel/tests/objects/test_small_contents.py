"""Small contents of a bulk import: many are framed, appended and placed at once."""

from __future__ import annotations

import random

import pytest

from svc.database import Database
from svc.errors import InsufficientStorage
from svc.hashing import ObjectKind, hash_content
from svc.log import encode_record
from svc.log.framing import frame_records
from svc.objects.codecs import Codec
from svc_testing.faults import Fault, inject

COUNT = 1500


def contents(count=COUNT, size=1024):
    source = random.Random(count)
    return [source.randbytes(size + number % 9) for number in range(count)]


def read_all(database, number):
    version = database.at()
    return version.read_all(version.get((f"d{number % 7}", f"f{number}")))


def put_all(transaction, parts):
    for number, content in enumerate(parts):
        transaction.put((f"d{number % 7}", f"f{number}"), content)


def test_many_records_are_framed_as_each_alone_is():
    payloads = [b"", b"a", b"b" * 8, b"c" * 4099]
    hashes = [bytes([number]) * 32 for number in range(len(payloads))]
    lengths, codecs = [0, 1, 8, 9000], [0, 0, 0, 1]
    alone = [
        encode_record(ObjectKind.CHUNK, hash, payload, codec=codec, raw_length=length, time_ms=7)
        for hash, payload, length, codec in zip(hashes, payloads, lengths, codecs, strict=True)
    ]
    together = frame_records(ObjectKind.CHUNK, hashes, payloads, lengths, codecs, time_ms=7)
    assert b"".join(together) == b"".join(alone)


def test_contents_of_all_sizes_come_back(tmp_path):
    parts = [*contents(), *contents(200, 5000), b"compress me " * 1000, b""]
    with Database(tmp_path / "a.svcdb") as database:
        with database.transaction() as transaction:
            put_all(transaction, parts)
        assert [read_all(database, number) for number in range(len(parts))] == parts
        assert database.objects.find(hash_content(parts[-2])).codec == Codec.ZSTD


def test_what_is_there_already_is_appended_once(tmp_path):
    parts = contents()
    with Database(tmp_path / "a.svcdb") as database:
        for _ in range(2):
            with database.transaction() as transaction:
                put_all(transaction, [*parts, *parts])
        assert database.objects.log.tail < 1.5 * sum(map(len, parts))
        assert database.at().totals().files == 2 * COUNT


def test_what_others_stored_since_it_was_appended_counts_once(tmp_path):
    parts = contents()
    with Database(tmp_path / "a.svcdb") as database:
        with database.transaction() as transaction:
            put_all(transaction, parts)
            with database.transaction() as other:
                put_all(other, parts[: COUNT // 2])
            places = {hash_content(part): database.objects.find(hash_content(part)) for part in parts[:9]}
        totals = database.totals()
        assert (totals.chunks, totals.chunk_bytes) == (COUNT, sum(map(len, parts)))
        assert {hash: database.objects.find(hash) for hash in places} == places, "the first place stays"
        assert [read_all(database, number) for number in range(COUNT)] == parts


def test_what_a_full_disk_refused_is_taken_when_there_is_room(tmp_path):
    parts = contents()
    with Database(tmp_path / "a.svcdb") as database, database.transaction() as transaction:
        with inject(Fault("svc.log.FileOperations.pwritev", 1, "ENOSPC")), pytest.raises(InsufficientStorage):
            put_all(transaction, parts)
        put_all(transaction, parts)
        transaction.commit()
        assert [read_all(database, number) for number in range(COUNT)] == parts
