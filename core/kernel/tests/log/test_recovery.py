"""What recovery keeps, cuts, saves and refuses to touch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import CorruptRecord, InvalidInput, TruncatedFile, UnsupportedFormat
from svc.hashing import ObjectKind, hash_object
from svc.log import (
    FIRST,
    RECORD_HEADER_SIZE,
    DamagedRegion,
    Location,
    Log,
    ScannedRecord,
    encode_record,
    record_size,
)
from svc.log.framing import FileHeader, encode_file_header

HEADER = encode_file_header(FileHeader(bytes(range(16)), 1))


def framed(content: bytes, kind: ObjectKind = ObjectKind.CHUNK) -> bytes:
    return encode_record(kind, hash_object(kind, content), content, time_ms=1)


def commit(content: bytes) -> bytes:
    return framed(content, ObjectKind.COMMIT)


def offsets(records):
    """Where each record of a file lies, and where the file ends."""
    found = [FIRST]
    for record in records:
        found.append(found[-1] + len(record))
    return found


def write(path, records):
    path.write_bytes(HEADER + b"".join(records))


def flip(path, offset, bit=1):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ bit]))


def saved(path):
    return list(path.parent.glob("*.cut-*"))


HISTORY = [framed(b"one"), commit(b"c1"), framed(b"two" * 9), commit(b"c2"), framed(b"three"), commit(b"c3")]
PLACES = offsets(HISTORY)


def test_a_sound_log_stays_as_it_is(path):
    write(path, HISTORY)
    before = path.read_bytes()
    with Log.open(path) as log:
        recovery = log.recover()
        assert (recovery.records, recovery.start, recovery.tail) == (6, FIRST, len(before))
        assert (recovery.cut_bytes, recovery.saved_to, recovery.damaged) == (0, None, ())
        assert log.tail == len(before)
        assert log.recover(PLACES[4]).records == 2
    assert path.read_bytes() == before


@pytest.mark.parametrize("last", [framed(b"a piece of an upload"), commit(b"the last commit")])
def test_a_tail_torn_at_every_byte_leaves_every_whole_record(path, forget, last):
    records = [*HISTORY, last]
    whole = HEADER + b"".join(records)
    start = PLACES[-1]
    for end in range(start, len(whole)):
        path.write_bytes(whole[:end])
        forget()
        with Log.open(path) as log:
            recovery = log.recover(PLACES[4])
            assert (recovery.tail, recovery.cut_bytes, recovery.records) == (start, end - start, 2)
            # A commit whose header is whole may have been acknowledged; the rest of a piece never was.
            expected = last[4] == ObjectKind.COMMIT and end - start >= RECORD_HEADER_SIZE
            assert recovery.may_be_lost == expected
            assert (recovery.saved_to is not None) == (end > start)
            if recovery.saved_to is not None:
                assert recovery.saved_to.endswith(".unfinished") != expected
                assert Path(recovery.saved_to).read_bytes() == whole[start:end]
                os.unlink(recovery.saved_to)
            assert path.read_bytes() == whole[:start]
            assert log.append([last]) == start
        assert path.read_bytes() == whole


@pytest.mark.parametrize("cut", range(8, 240, 24))
def test_an_append_torn_within_a_batch_keeps_the_whole_records_before(path, log, cut):
    """As the next appender finds it, while others go on: no restart, no recovery."""
    log.append(HISTORY)
    tail = log.tail
    batch = [framed(b"first"), framed(b"second" * 5), framed(b"third")]
    ends = offsets(batch)
    with open(path, "ab") as file:
        file.write(b"".join(batch)[:cut])
    kept = max(end - FIRST for end in ends if end - FIRST <= cut)
    assert log.append([framed(b"next")]) == tail + kept
    assert [record.kind for record in log.scan(tail)][-1] is ObjectKind.CHUNK
    assert sum(1 for _ in log.scan(verify=True)) == 6 + ends.index(kept + FIRST) + 1
    torn = b"".join(batch)[kept:cut]
    assert [file.read_bytes() for file in saved(path)] == ([torn] if torn else [])
    assert all(file.name.endswith(".unfinished") for file in saved(path))


def test_a_whole_commit_that_was_never_published_is_rolled_forward(path, log):
    log.append(HISTORY)
    with open(path, "ab") as file:
        file.write(commit(b"c4"))
    log.append(())
    assert [item.payload for item in log.scan(payloads=True)][-1] == b"c4"


def test_space_that_was_never_filled_is_cut_without_a_copy(path):
    write(path, [*HISTORY, bytes(3 << 20)])
    with Log.open(path) as log:
        recovery = log.recover()
        assert (recovery.tail, recovery.cut_bytes, recovery.saved_to) == (PLACES[-1], 3 << 20, None)


def test_bytes_of_unknown_origin_are_saved_before_they_are_cut(path):
    rubbish = b"not a record, and not nothing either" * 100
    write(path, [*HISTORY, rubbish])
    with Log.open(path) as log:
        recovery = log.recover()
    assert recovery.saved_to == str(path.parent / f"x.svcdb.cut-{PLACES[-1]}")
    assert Path(recovery.saved_to).read_bytes() == rubbish
    assert path.stat().st_size == PLACES[-1]
    assert os.stat(recovery.saved_to).st_mode & 0o077 == 0


def test_what_was_saved_before_is_never_overwritten(path, forget):
    contents = [b"first loss" * 20, b"second loss" * 20]
    for content in contents:
        write(path, [*HISTORY, content])
        forget()
        with Log.open(path) as log:
            log.recover()
    assert sorted(file.read_bytes() for file in saved(path)) == contents
    assert {file.name for file in saved(path)} == {
        f"x.svcdb.cut-{PLACES[-1]}",
        f"x.svcdb.cut-{PLACES[-1]}-2",
    }


@pytest.mark.parametrize("position", range(0, RECORD_HEADER_SIZE + 4, 5))
def test_a_flipped_bit_in_the_last_commit_never_loses_its_bytes(path, position):
    write(path, HISTORY)
    flip(path, PLACES[5] + position)
    before = path.read_bytes()
    with Log.open(path) as log:
        recovery = log.recover()
    if position < RECORD_HEADER_SIZE + 2:
        assert recovery.tail == PLACES[5]
        assert Path(recovery.saved_to).read_bytes() == before[PLACES[5] :]
    else:
        # The padding is of no meaning.
        assert recovery.cut_bytes == 0


@pytest.mark.parametrize("position", [0, 30, RECORD_HEADER_SIZE])
def test_a_batch_that_reached_the_disk_with_gaps_is_cut_as_a_whole_and_saved(path, position):
    """After a power cut: the last commit is there, but what it closes is not."""
    write(path, HISTORY)
    flip(path, PLACES[4] + position)
    before = path.read_bytes()
    with Log.open(path) as log:
        recovery = log.recover()
        assert (recovery.records, recovery.tail) == (4, PLACES[4])
        assert [item.payload for item in log.scan(payloads=True)][-1] == b"c2"
    assert Path(recovery.saved_to).read_bytes() == before[PLACES[4] :]


def test_rot_in_an_old_payload_is_reported_and_nothing_is_cut(path):
    write(path, HISTORY)
    flip(path, PLACES[0] + RECORD_HEADER_SIZE)
    flip(path, PLACES[2] + RECORD_HEADER_SIZE + 5)
    before = path.read_bytes()
    with Log.open(path) as log:
        recovery = log.recover()
        assert recovery.damaged == (Location(PLACES[0], 3), Location(PLACES[2], 27))
        assert (recovery.records, recovery.cut_bytes) == (6, 0)
        for offset, length in recovery.damaged:
            with pytest.raises(CorruptRecord):
                log.read_payload(offset, length)
        assert log.read_payload(PLACES[4], 5) == b"three"
    assert path.read_bytes() == before


@pytest.mark.parametrize("record", [0, 1, 2])
@pytest.mark.parametrize("position", [0, 4, 8, 40, 64])
def test_rot_in_an_old_header_stops_recovery_and_changes_nothing(path, record, position):
    write(path, HISTORY)
    flip(path, PLACES[record] + position)
    before = path.read_bytes()
    with Log.open(path) as log, pytest.raises(CorruptRecord, match="no crash explains it") as caught:
        log.recover()
    assert caught.value.details["offset"] == PLACES[record]
    assert path.read_bytes() == before
    assert saved(path) == []
    with Log.open(path, read_only=True) as reader:
        assert reader.read_payload(PLACES[4], 5) == b"three"


def test_commits_that_share_a_sync_are_cut_together_and_saved(path):
    """A power cut may take the first block of a group of commits and leave the others."""
    group = [framed(b"node"), commit(b"c4"), framed(b"another"), commit(b"c5"), commit(b"c6")]
    write(path, [*HISTORY, *group])
    flip(path, PLACES[-1] + 20)
    before = path.read_bytes()
    with Log.open(path) as log:
        with pytest.raises(CorruptRecord, match="3 commits stand behind"):
            # Who does not know that all this is one batch must take it for rot.
            log.recover(PLACES[-1])
        assert path.read_bytes() == before
        recovery = log.recover(PLACES[-1], one_batch=True)
        assert (recovery.tail, recovery.cut_bytes) == (PLACES[-1], len(b"".join(group)))
    assert Path(recovery.saved_to).read_bytes() == before[PLACES[-1] :]


def test_rot_before_the_start_is_neither_looked_at_nor_cut(path):
    write(path, [*HISTORY, framed(b"torn")[:-8]])
    flip(path, PLACES[0])
    flip(path, PLACES[2] + RECORD_HEADER_SIZE)
    before = path.read_bytes()
    with Log.open(path) as log:
        assert log.tail == PLACES[-1]
        recovery = log.recover(PLACES[4])
        assert (recovery.records, recovery.tail, recovery.may_be_lost) == (2, PLACES[-1], False)
        assert [type(item) for item in log.scan_tolerant()] == [DamagedRegion] + [ScannedRecord] * 5
    assert path.read_bytes() == before[: PLACES[-1]]


@pytest.mark.parametrize("position", [0, 4, 8, 40, 64])
def test_rot_in_the_header_of_a_known_commit_stops_recovery(path, log, position):
    log.append(HISTORY)
    flip(path, PLACES[5] + position)
    before = path.read_bytes()
    for one_batch in (False, True):
        with pytest.raises(CorruptRecord, match="no crash explains it") as caught:
            log.recover(one_batch=one_batch)
        assert caught.value.details["offset"] == PLACES[5]
    assert path.read_bytes() == before
    assert saved(path) == []


def test_records_inside_a_torn_record_are_not_taken_for_records_of_the_log(path):
    """A database file may be stored in a database: what it holds is content."""
    inner = HEADER + commit(b"foreign commit") * 3
    torn = framed(inner)[:-80]
    write(path, [*HISTORY, torn])
    with Log.open(path) as log:
        assert log.tail == PLACES[-1]
        recovery = log.recover()
        assert (recovery.tail, recovery.may_be_lost) == (PLACES[-1], False)
        assert recovery.remains.is_only_unfinished


def test_what_is_known_to_have_been_written_whole_is_never_cut(path, log):
    """Since the machine started nothing below the shared tail can have been torn by a crash."""
    log.append([framed(b"ahead"), framed(b"of any commit")])
    flip(path, FIRST + RECORD_HEADER_SIZE)
    assert log.recover().damaged == (Location(FIRST, 5),)
    flip(path, FIRST)
    size = path.stat().st_size
    with pytest.raises(CorruptRecord):
        log.recover()
    assert path.stat().st_size == size


def test_torn_behind_the_known_tail_and_rotten_before_it_are_told_apart(path, log):
    log.append([framed(b"rotten"), framed(b"sound")])
    tail = log.tail
    flip(path, FIRST + RECORD_HEADER_SIZE)
    with open(path, "ab") as file:
        file.write(framed(b"torn")[:-8])
    recovery = log.recover()
    assert (recovery.tail, recovery.cut_bytes, recovery.records) == (tail, record_size(4) - 8, 2)
    assert recovery.damaged == (Location(FIRST, 6),)


def test_records_of_a_later_version_are_not_cut(path):
    write(path, [*HISTORY, encode_record(9, bytes(32), b"from the future", time_ms=1)])
    before = path.read_bytes()
    with Log.open(path) as log, pytest.raises(UnsupportedFormat, match="kind 9"):
        log.recover()
    assert path.read_bytes() == before


def test_large_records_are_verified_in_pieces_and_stepped_over_when_damaged(path, forget):
    large = bytearray(framed(os.urandom(3 << 20)))
    write(path, [framed(b"one"), commit(b"c1"), bytes(large)])
    with Log.open(path) as log:
        assert log.recover().records == 3
    large[0] ^= 1
    forget()
    write(path, [framed(b"one"), bytes(large), commit(b"c1"), commit(b"c2")])
    with Log.open(path) as log, pytest.raises(CorruptRecord, match="2 commits stand behind"):
        log.recover()


def test_a_start_that_cannot_be_one_is_refused(path, log):
    for start in (0, FIRST + 1, -8):
        with pytest.raises(InvalidInput):
            log.recover(start)
    with pytest.raises(TruncatedFile):
        log.recover(log.tail + 8)


@given(data=st.data())
def test_whatever_happens_to_the_end_acknowledged_commits_are_kept_or_saved(tmp_path_factory, data):
    """Any damage to the last batch: what stood before it stays, byte for byte, and no commit vanishes."""
    path = tmp_path_factory.mktemp("crash") / "x.svcdb"
    records = [*HISTORY, framed(b"piece"), framed(b"node" * 7), commit(b"c4")]
    durable = PLACES[-1]
    content = bytearray(HEADER + b"".join(records))
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(durable, len(content) - 1))
        end = min(len(content), start + data.draw(st.integers(1, 120)))
        content[start:end] = data.draw(st.sampled_from([bytes(end - start), b"\xff" * (end - start)]))
    del content[data.draw(st.integers(durable, len(content))) :]
    path.write_bytes(content)
    with Log.open(path) as log:
        recovery = log.recover()
        assert recovery.tail >= durable
        assert path.read_bytes() == content[: recovery.tail]
        assert sum(1 for _ in log.scan(verify=True)) == recovery.records
    cut = bytes(content[recovery.tail :])
    kept = b"".join(file.read_bytes() for file in saved(path))
    if records[-1] in cut:
        assert records[-1] in kept
