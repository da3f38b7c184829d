"""Whatever a crash leaves, the database opens by itself and holds everything that was acknowledged."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from svc.database import Database
from svc.errors import (
    CorruptRecord,
    DatabaseBusy,
    DatabaseLatched,
    DatabaseNotFound,
    InsufficientStorage,
    SvcError,
)
from svc_maintenance.verification import verify

AT_LENGTH = int(os.environ.get("SVC_TEST_CRASH_SCALE", "1")) > 1
"""In the crash laboratory every byte is tried, elsewhere both ends and some between."""


def fill(path: Path, count: int) -> list[bytes]:
    """Commits ``count`` files, one each; returns the roots."""
    roots = []
    with Database(path) as database:
        for number in range(count):
            with database.transaction() as transaction:
                transaction.put((f"d{number % 3}", f"f{number}"), b"content %d " % number * 50)
            assert transaction.result is not None
            roots.append(transaction.result.version)
    return roots


def check(database: Database, count: int) -> None:
    """Every file of the first ``count`` is there, byte for byte."""
    version = database.at()
    for number in range(count):
        entry = version.get((f"d{number % 3}", f"f{number}"))
        assert entry is not None, number
        assert version.read_all(entry) == b"content %d " % number * 50
    assert verify(database).damaged == []


def remove_rebuildable(path: Path) -> None:
    shutil.rmtree(f"{path}.d")


def test_a_database_opens_as_it_was_closed(path: Path) -> None:
    roots = fill(path, 20)
    with Database(path) as database:
        assert database.head().root == roots[-1]
        check(database, 20)
        assert database.recovered_bytes == 0


def test_there_is_nothing_to_open(path: Path) -> None:
    with pytest.raises(DatabaseNotFound):
        Database(path, create=False)
    with pytest.raises(DatabaseNotFound):
        Database(path, read_only=True)
    assert not path.exists()


def test_everything_beside_the_log_can_be_made_again(path: Path) -> None:
    fill(path, 30)
    with Database(path) as database:
        totals, head, objects = database.totals(), database.head(), database.objects.index.object_count()
    remove_rebuildable(path)
    seen: list[tuple[int, int]] = []
    with Database(path, progress=lambda done, total: seen.append((done, total))) as database:
        assert database.totals() == totals
        assert (database.head().sequence, database.head().root) == (head.sequence, head.root)
        assert database.objects.index.object_count() == objects
        check(database, 30)
        assert [commit.sequence for commit in database.commits()] == list(range(1, 31))
    assert seen and seen[-1][0] == seen[-1][1]


def test_the_file_alone_is_the_database(path: Path, tmp_path: Path) -> None:
    roots = fill(path, 10)
    copy = tmp_path / "elsewhere" / "y.svcdb"
    copy.parent.mkdir()
    shutil.copy(path, copy)
    with Database(copy) as database:
        assert database.head().root == roots[-1]
        check(database, 10)


def test_a_foreign_or_older_index_is_not_believed(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.svcdb"
    fill(other, 3)
    fill(path, 10)
    remove_rebuildable(path)
    shutil.copytree(f"{other}.d", f"{path}.d")
    with Database(path) as database:
        check(database, 10)


def test_an_index_of_another_boot_is_rebuilt_unless_it_was_closed_in_order(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path, 10)
    for module in ("svc.objects.environment_notes", "svc.database.state"):
        monkeypatch.setattr(f"{module}.boot_id", lambda: b"another boot....")
    with Database(path) as database:
        assert not database._opened.rebuilt
        check(database, 10)
        with database.transaction() as transaction:
            transaction.put(("d1", "f10"), b"content 10 " * 50)
        # The machine dies: no orderly close.
        crashed = path.with_name("crashed.svcdb")
        shutil.copy(path, crashed)
        shutil.copytree(f"{path}.d", f"{crashed}.d")
    for module in ("svc.objects.environment_notes", "svc.database.state"):
        monkeypatch.setattr(f"{module}.boot_id", lambda: b"the boot after..")
    with Database(crashed) as database:
        assert database._opened.rebuilt
        check(database, 11)


def test_removing_what_is_beside_the_log_under_a_user_is_refused(path: Path) -> None:
    fill(path, 3)
    with Database(path) as database:
        remove_rebuildable(path)
        with pytest.raises((DatabaseBusy, SvcError)):
            Database(path)
        check(database, 3)
    with Database(path) as database:
        check(database, 3)


def test_the_log_cut_anywhere_in_its_last_commit_opens(path: Path, tmp_path: Path) -> None:
    roots = fill(path, 4)
    whole = path.read_bytes()
    with Database(path) as database:
        end_before, end = database.commit(4).durable_end, database.head().commit_end
    lengths = range(end_before, end)
    if not AT_LENGTH:
        sample = random.Random(1).sample(lengths, 60)
        lengths = sorted({*lengths[:40], *lengths[-40:], *sample})
    for length in lengths:
        cut = tmp_path / "cut.svcdb"
        cut.write_bytes(whole[:length])
        shutil.rmtree(f"{cut}.d", ignore_errors=True)
        with Database(cut) as database:
            assert database.head().sequence == 3
            assert database.head().root == roots[2]
        # Whole records stay; what was cut off in the middle of one is kept beside the file.
        for saved in tmp_path.glob("cut.svcdb.cut-*"):
            assert whole[:length].endswith(saved.read_bytes())
            saved.unlink()
    cut.write_bytes(whole)
    shutil.rmtree(f"{cut}.d")
    with Database(cut) as database:
        check(database, 4)


def test_a_flipped_bit_in_an_old_commit_is_named_and_nothing_else_is_lost(path: Path, tmp_path: Path) -> None:
    fill(path, 12)
    with Database(path) as database:
        start, end = database.commit(3).durable_end, database.commit(4).durable_end
    whole = bytearray(path.read_bytes())
    for position in range(start, end, 97):
        damaged = tmp_path / "damaged.svcdb"
        whole[position] ^= 16
        damaged.write_bytes(whole)
        whole[position] ^= 16
        shutil.rmtree(f"{damaged}.d", ignore_errors=True)
        with Database(damaged) as database:
            assert database.head().sequence == 12
            report = verify(database)
            version = database.at()
            for number in range(12):
                entry = version.get((f"d{number % 3}", f"f{number}"))
                assert entry is not None
                if number != 2:
                    assert version.read_all(entry) == b"content %d " % number * 50
            padding = position >= end - 8
            assert report.damaged or padding, position


STEPS = """
import os, signal, sys
from svc.database import Database
from svc.database.state import SharedState
from svc.log import Log

step = sys.argv[2]
database = Database(sys.argv[1])
for number in range(5):
    with database.transaction() as transaction:
        transaction.put((f"d{number % 3}", f"f{number}"), b"content %d " % number * 50)

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

if step == "before the append":
    Log.append = die
elif step == "before the sync":
    Log.sync = die
elif step == "before the index":
    SharedState.index_and_publish = die
elif step == "before the head":
    write = SharedState.publish
    SharedState.publish = lambda self, head: die() if head.sequence == 6 else write(self, head)
elif step == "before the answer":
    index_and_publish = SharedState.index_and_publish
    def finish(self, places, commits):
        index_and_publish(self, places, commits)
        die()
    SharedState.index_and_publish = finish
with database.transaction() as transaction:
    transaction.put(("d2", "f5"), b"content 5 " * 50)
"""


@pytest.mark.parametrize(
    "step",
    ["before the append", "before the sync", "before the index", "before the head", "before the answer"],
)
@pytest.mark.parametrize("witness", ["alone", "with another process"])
def test_a_kill_at_each_step_of_a_commit_loses_nothing_acknowledged(
    path: Path, step: str, witness: str
) -> None:
    other = Database(path) if witness == "with another process" else None
    result = subprocess.run(
        [sys.executable, "-c", STEPS, str(path), step], capture_output=True, timeout=60, check=False
    )
    assert result.returncode == -signal.SIGKILL, result.stderr
    database = other if other is not None else Database(path)
    with database:
        with database.transaction() as transaction:
            transaction.put(("d0", "f6"), b"content 6 " * 50)
        expected = 6 if step == "before the append" else 7
        assert database.head().sequence == expected
        check(database, 5 if step == "before the append" else 7)


def test_a_failed_sync_latches_every_process_and_acknowledges_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path, 3)
    with Database(path) as database, Database(path) as other:

        def fail(self: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        with monkeypatch.context() as patched:
            patched.setattr(type(database.objects.log), "sync", fail)
            with pytest.raises(DatabaseLatched), database.transaction() as transaction:
                transaction.put(("lost",), b"x")
        for opened in (database, other):
            with pytest.raises(DatabaseLatched), opened.transaction() as transaction:
                transaction.put(("more",), b"x")
            check(opened, 3)
    with Database(path) as database, database.transaction() as transaction:
        transaction.put(("more",), b"x")


def test_a_full_disk_refuses_the_write_and_takes_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, records: object) -> int:
        raise InsufficientStorage("The disk is full.")

    before = database.head()
    with monkeypatch.context() as patched:
        patched.setattr(type(database.objects.log), "append", fail)
        with pytest.raises(InsufficientStorage), database.transaction() as transaction:
            transaction.put(("f",), b"x")
    assert database.head() == before
    with database.transaction() as transaction:
        transaction.put(("f",), b"x")
    assert database.head().sequence == 1


def test_a_damaged_chunk_is_an_error_and_not_other_bytes(path: Path) -> None:
    fill(path, 2)
    whole = bytearray(path.read_bytes())
    position = bytes(whole).index(b"content 1 content")
    whole[position] ^= 1
    path.write_bytes(whole)
    with Database(path) as database:
        entry = database.at().get(("d1", "f1"))
        assert entry is not None
        with pytest.raises(CorruptRecord) as caught:
            database.at().read_all(entry)
        assert caught.value.details["hash"] == entry.hash.hex()
        report = verify(database)
        assert [damage.path for damage in report.damaged] == ["/d1/f1"]
