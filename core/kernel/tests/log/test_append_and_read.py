"""Writing at the end and reading back: by offset, in order, from many threads, and after closing."""

from __future__ import annotations

import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import CorruptRecord, DatabaseClosed, TruncatedFile
from svc.hashing import ObjectKind, hash_object
from svc.log import (
    FIRST,
    DamagedRegion,
    LocalFileStorage,
    Log,
    boot_id,
    encode_record,
    encode_void,
    record_size,
)


def framed(content: bytes, kind: ObjectKind = ObjectKind.CHUNK) -> bytes:
    return encode_record(kind, hash_object(kind, content), content, time_ms=1)


def test_a_batch_lies_in_one_piece_where_append_says(log):
    first = log.append([framed(b"one"), framed(b"two!")])
    assert first == FIRST
    assert log.tail == first + record_size(3) + record_size(4)
    assert log.read(first, 3).payload == b"one"
    record = log.read(first + record_size(3), 4)
    assert (record.kind, record.payload, record.raw_length) == (ObjectKind.CHUNK, b"two!", 4)
    assert record.hash == hash_object(ObjectKind.CHUNK, b"two!")


def test_an_empty_batch_writes_nothing(log):
    assert log.append([]) == log.append(()) == log.tail == FIRST


def test_what_is_not_framed_is_refused_before_anything_is_written(log, path):
    with pytest.raises(ValueError, match="padded"):
        log.append([framed(b"one"), b"seven b"])
    assert path.stat().st_size == FIRST


def test_a_batch_of_more_pieces_than_the_system_takes_at_once_is_written_whole(log):
    contents = [str(number).encode() for number in range(3000)]
    log.append([framed(content) for content in contents])
    assert [record.payload for record in log.scan(payloads=True)] == contents


@given(sizes=st.lists(st.sampled_from([0, 1, 7, 8, 100, 20_000, 700_000, 1_500_000]), max_size=12))
def test_a_scan_gives_every_record_once_whatever_their_sizes(tmp_path_factory, sizes):
    path = tmp_path_factory.mktemp("scan") / "x.svcdb"
    with Log.open(path) as log:
        log.recover()
        contents = [bytes([number]) * size for number, size in enumerate(sizes)]
        offsets = [log.append([framed(content)]) for content in contents]
        for arguments in ({}, {"verify": True}, {"payloads": True}, {"payloads": True, "verify": True}):
            records = list(log.scan(**arguments))
            assert [record.offset for record in records] == offsets
            assert [record.stored_length for record in records] == sizes
            assert [record.end for record in records] == [*offsets[1:], log.tail][: len(offsets)]
            wanted = contents if "payloads" in arguments else [None] * len(contents)
            assert [record.payload for record in records] == wanted
    path.unlink()


def test_a_scan_steps_over_large_payloads_without_reading_them(log):
    for _ in range(20):
        log.append([framed(os.urandom(300_000))])
    read = 0
    whole = log.storage.read

    def counting(offset, length):
        nonlocal read
        data = whole(offset, length)
        read += len(data)
        return data

    log._read = counting
    assert sum(1 for _ in log.scan()) == 20
    assert read < log.tail / 3


def test_a_scan_between_two_records_gives_what_lies_between(log):
    offsets = [log.append([framed(b"%d" % number)]) for number in range(5)]
    assert [record.offset for record in log.scan(offsets[1], offsets[4])] == offsets[1:4]


def test_a_scan_stops_at_the_tail_as_it_was_when_it_began(log):
    log.append([framed(b"before")])
    records = log.scan()
    log.append([framed(b"after")])
    assert sum(1 for _ in records) == 1


def test_a_scan_names_the_damaged_record(log, path):
    log.append([framed(b"one")])
    offset = log.append([framed(b"two")])
    log.append([framed(b"three")])
    with open(path, "r+b") as file:
        file.seek(offset + 8)
        file.write(b"\xff")
    with pytest.raises(CorruptRecord) as caught:
        list(log.scan())
    assert caught.value.details["offset"] == offset
    found = list(log.scan_tolerant())
    assert [type(item) is DamagedRegion for item in found] == [False, True, False]
    assert (found[1].offset, found[1].end) == (offset, offset + record_size(3))


def test_a_scan_finds_a_damaged_payload_when_asked_to(log, path):
    offset = log.append([framed(b"content")])
    with open(path, "r+b") as file:
        file.seek(offset + 75)
        file.write(b"\xff")
    assert sum(1 for _ in log.scan()) == 1
    for payloads in (False, True):
        with pytest.raises(CorruptRecord):
            list(log.scan(payloads=payloads, verify=True))


def test_a_scan_that_ends_within_a_record_says_so(log):
    log.append([framed(b"whole")])
    with pytest.raises(TruncatedFile):
        list(log.scan(end=log.tail - 8))
    with pytest.raises(TruncatedFile):
        list(log.scan(end=log.tail + 80))


def test_a_void_is_stepped_over_and_its_content_is_nobodys_business(log):
    log.append([encode_void(4096, time_ms=1) + os.urandom(4096), framed(b"behind")])
    kinds = [record.kind for record in log.scan(verify=True)]
    assert kinds == [ObjectKind.VOID, ObjectKind.CHUNK]
    assert log.recover().records == 2


def test_reading_behind_the_end_or_beside_a_record_is_an_error(log):
    offset = log.append([framed(b"12345678" * 20)])
    with pytest.raises(TruncatedFile):
        log.read_payload(log.tail, 1)
    for wrong in (offset + 8, offset - 8):
        with pytest.raises(CorruptRecord):
            log.read(wrong, 16)


def test_threads_append_at_once_and_nothing_is_lost_or_mixed(log):
    def work(worker):
        chosen = random.Random(worker)
        places = []
        for number in range(60):
            contents = [b"%d/%d/" % (worker, number) + bytes(chosen.randrange(3000)) for _ in range(3)]
            offset = log.append([framed(content) for content in contents])
            places.append((offset, contents))
        return places

    with ThreadPoolExecutor(8) as pool:
        batches = [place for places in pool.map(work, range(8)) for place in places]
    for first, contents in batches:
        offset = first
        for content in contents:
            assert log.read_payload(offset, len(content)) == content
            offset += record_size(len(content))
    assert sum(1 for _ in log.scan(verify=True)) == 8 * 60 * 3


def test_two_openings_in_one_process_write_to_one_log(log, path):
    with Log.open(path) as other:
        places = [
            (opening, opening.append([framed(b"%d" % number)]))
            for number in range(4)
            for opening in (log, other)
        ]
        assert log.tail == other.tail
        for number, (opening, offset) in enumerate(places):
            reader = log if opening is other else other
            assert reader.read_payload(offset, 1) == b"%d" % (number // 2)


def test_the_commit_lock_excludes_other_openings_and_threads(log, path):
    order = []
    with Log.open(path) as other:
        log.acquire_commit_lock()
        assert not other.try_acquire_commit_lock()
        assert not log.try_acquire_commit_lock()

        def wait(opening):
            with opening.commit_lock():
                order.append("waited")

        waiting = [threading.Thread(target=wait, args=(opening,)) for opening in (log, other)]
        for thread in waiting:
            thread.start()
        order.append("held")
        # Another thread than the one that took it may give it back.
        releasing = threading.Thread(target=log.release_commit_lock)
        releasing.start()
        for thread in (releasing, *waiting):
            thread.join()
        assert order == ["held", "waited", "waited"]
        assert other.try_acquire_commit_lock()
        other.release_commit_lock()


def test_an_appender_does_not_wait_for_a_commit(log):
    with log.commit_lock():
        log.append([framed(b"ahead")])
        log.sync()


def test_one_opening_may_take_the_log_for_itself_when_nobody_else_has_it(log, path):
    with Log.open(path):
        assert not log.exclude_others()
    assert log.exclude_others()


def test_after_closing_every_call_says_closed(path):
    log = Log.open(path)
    log.recover()
    offset = log.append([framed(b"one")])
    records = log.scan()
    log.close()
    log.close()
    for call in (
        lambda: log.append([framed(b"two")]),
        lambda: log.read(offset, 3),
        lambda: log.read_payload(offset, 3),
        lambda: list(records),
        lambda: log.tail,
        log.sync,
        log.recover,
        log.acquire_commit_lock,
        log.try_acquire_commit_lock,
        log.disk_space,
    ):
        with pytest.raises(DatabaseClosed, match="is closed"):
            call()


def test_a_log_can_be_closed_while_its_commit_lock_is_held(path):
    log = Log.open(path)
    with log.commit_lock():
        log.close()
    with Log.open(path) as again, again.commit_lock():
        pass


def test_a_forked_child_cannot_use_the_log_and_does_not_hold_its_locks(log, path):
    offset = log.append([framed(b"one")])
    go, gone = os.pipe()
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(gone)
            refused = 0
            for call in (
                lambda: log.append([framed(b"two")]),
                lambda: log.read_payload(offset, 3),
                lambda: log.tail,
                log.acquire_commit_lock,
            ):
                try:
                    call()
                except DatabaseClosed as error:
                    refused += "fork" in error.message
            log.close()
            os.write(tell, b"x")
            os.read(go, 1)
            status = 0 if refused == 4 else 2
        finally:
            os._exit(status)
    os.close(go)
    os.close(tell)
    os.read(ready, 1)
    os.close(ready)
    # The parent is untouched, and its locks are its own: the living child does not keep them.
    assert log.read_payload(offset, 3) == b"one"
    with log.commit_lock(), Log.open(path) as other:
        assert not other.try_acquire_commit_lock()
    log.close()
    with Log(LocalFileStorage.open(path, timeout=0)) as alone:
        assert alone.alone
    os.write(gone, b"x")
    os.close(gone)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_space_of_the_disk_is_told(log):
    free, total = log.disk_space()
    assert 0 < free <= total


def test_the_boot_has_a_name_that_stays():
    assert boot_id() == boot_id()
    assert len(boot_id()) == 16
