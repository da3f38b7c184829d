"""A verification accounts for every byte of the file, up to the last one."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from svc.database import Database
from svc.hashing import ObjectKind, hash_object
from svc.log import FIRST, Log, encode_record
from svc.objects.chunking import WHOLE_LIMIT
from svc_maintenance.verification import VerifyReport, verify

EXPORT = Path(__file__).parents[3] / "docs" / "format" / "golden" / "export.hex"


def put(database: Database, name: str, content: bytes = b"x" * 40) -> None:
    with database.transaction() as transaction:
        transaction.put((name,), content)


def make(path: Path, *names: str) -> None:
    with Database(path) as database:
        for name in names:
            put(database, name)


def chunk(content: bytes) -> bytes:
    return encode_record(ObjectKind.CHUNK, hash_object(ObjectKind.CHUNK, content), content, time_ms=1)


def looked_at(path: Path) -> VerifyReport:
    with Database(path, read_only=True) as database:
        return verify(database)


def alone(path: Path, content: bytes) -> Path:
    copy = path.with_name("copy.svcdb")
    shutil.rmtree(f"{copy}.d", ignore_errors=True)
    copy.write_bytes(content)
    return copy


@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize(
    ("addition", "said"),
    [
        (chunk(b"a whole record"), "whole record"),
        (chunk(b"a torn record")[:-8], "of a record that is unfinished or cut short"),
        (os.urandom(700), "in which no record can be read"),
        (bytes(700), "nothing but zeros"),
        (b"\1\2\3", "3 bytes of a record that is unfinished"),
    ],
)
def test_what_stands_behind_the_end_is_said(path: Path, addition: bytes, said: str, beside: bool) -> None:
    make(path, "a", "b")
    size = path.stat().st_size
    with open(path, "ab") as file:
        file.write(addition)
    report = looked_at(path if beside else alone(path, path.read_bytes()))
    (damage,) = [one for one in report.damaged if one.offset == size]
    assert said in damage.message


def test_an_export_with_a_record_behind_its_commit_is_not_well(path: Path) -> None:
    content = bytes.fromhex(EXPORT.read_text())
    assert looked_at(alone(path, content)).ok
    report = looked_at(alone(path, content + chunk(b"added")))
    (damage,) = report.damaged
    assert damage.message.startswith("1 whole record that no commit names stands at the end of the file: ")
    assert damage.offset == len(content)


@pytest.mark.parametrize("rest", [b"", bytes(4000), os.urandom(4000)])
def test_a_header_that_zeros_or_noise_follow_is_not_well(path: Path, rest: bytes) -> None:
    make(path, "a", "b")
    report = looked_at(alone(path, path.read_bytes()[:FIRST] + rest))
    assert report.ok == (rest == b"")


def test_a_file_cut_to_two_thirds_is_not_well(path: Path) -> None:
    make(path, *"abcdefgh")
    content = path.read_bytes()
    assert not looked_at(alone(path, content[: len(content) * 2 // 3 + 3])).ok


def test_a_flip_anywhere_in_the_last_batch_of_a_file_alone_is_not_well(path: Path) -> None:
    make(path, "a")
    with Database(path) as database:
        put(database, "b")
        start = database.commit(2).durable_end
        content = bytearray(path.read_bytes())
    for position in range(start, len(content), 7):
        content[position] ^= 8
        assert not looked_at(alone(path, content)).ok, position
        content[position] ^= 8
    assert looked_at(alone(path, content)).ok


def test_padding_that_is_not_zero_is_named(path: Path) -> None:
    make(path, "a")
    content = bytearray(path.read_bytes())
    with Log.open(path, read_only=True) as log:
        padded = next(one for one in log.scan() if one.stored_length & 7)
    content[padded.end - 1] ^= 1
    report = looked_at(alone(path, content))
    assert [(one.offset, "padding" in one.message) for one in report.damaged] == [(padded.offset, True)]


def test_a_damaged_second_copy_of_an_object_is_named(path: Path) -> None:
    make(path, "a")
    with Database(path) as database:
        offset = database.objects.log.append([chunk(b"x" * 40)])
        put(database, "b")
    with open(path, "r+b") as file:
        file.seek(offset + 72)
        file.write(b"y")
    report = looked_at(path)
    assert [(one.offset, "second copy" in one.message) for one in report.damaged] == [(offset, True)]


def test_commits_that_are_missing_in_the_middle_are_named(path: Path) -> None:
    make(path, *"abcde")
    with Database(path, read_only=True) as database:
        places = [database.objects.index.commit_place(number) for number in range(1, 6)]
    content = bytearray(path.read_bytes())
    for offset, length in places[1:3]:
        content[offset : offset + length] = bytes(length)
    report = looked_at(alone(path, content))
    messages = [one.message for one in report.damaged]
    assert {f"Commit {number} cannot be read: There is no commit {number}." for number in (2, 3)} <= set(
        messages
    )


def test_uploads_that_no_commit_took_are_counted_and_no_damage(path: Path) -> None:
    with Database(path) as database:
        put(database, "a")
        database.store_bytes(os.urandom(WHOLE_LIMIT * 3))
        for read_only in (True, False):
            with Database(path, read_only=read_only) as other:
                report = verify(other)
                assert report.ok and report.unnamed > 0
        killed = alone(path, path.read_bytes())
    # The same where nobody can finish it or vouch for it: a file cut within a commit looks like that.
    assert not looked_at(killed).ok
    make(killed, "b")
    assert looked_at(killed).ok
    assert looked_at(path).ok


def test_a_database_that_is_written_to_all_the_time_is_well(path: Path) -> None:
    stop = threading.Event()
    with Database(path) as database:
        put(database, "a")

        def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                put(database, f"f{number % 50}", os.urandom(300))
                if number % 5 == 0:
                    database.store_bytes(os.urandom(WHOLE_LIMIT * 2))

        threads = [threading.Thread(target=write) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(8):
                assert looked_at(path).damaged == []
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def test_what_a_killed_appender_left_beside_a_living_one_is_reported_until_the_next_append(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_maintenance.verification.ends._SETTLE_SECONDS", 0.2)
    with Database(path) as database:
        put(database, "a")
        size = path.stat().st_size
        with open(path, "ab") as file:
            file.write(chunk(b"torn")[:-8])
        report = looked_at(path)
        assert [(one.offset, "unfinished" in one.message) for one in report.damaged] == [(size, True)]
        put(database, "b")
        assert looked_at(path).ok
