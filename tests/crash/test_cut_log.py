"""The log cut at every byte of its last commits: whole commits stay, and nothing of the rest is seen."""

from __future__ import annotations

import io
import shutil
import threading
import time
from pathlib import Path

import pytest

from crash.boots import another_boot
from crash.scale import SCALE
from svc.database import Database
from svc.errors import TruncatedFile
from svc.log import Log
from svc_maintenance.verification import verify

EVERY_BYTE = 4
"""At this scale and above every byte is a place to cut, whatever lies beside the log. Below it every byte of
the last commit is, with one of the three beside it; before that every few, and all around each record."""

BESIDE = ("nothing", "an older index", "the index of the whole log")

Snapshot = dict[tuple[str, ...], bytes]


def snapshot(database: Database) -> Snapshot:
    version = database.at()
    return {path: version.read_all(entry) for path, entry in version.walk(files_only=True)}


def put(database: Database, *files: tuple[str, bytes]) -> None:
    with database.transaction() as transaction:
        for name, content in files:
            stored = database.store(io.BytesIO(content)) if len(content) > 65536 else content
            transaction.put(("d", name), stored)


def write_batches(path: Path) -> None:
    """Some commits; then several that were folded into one batch, with uploads before, between and behind.

    Whoever commits first holds the batch open: the test takes the commit lock, and lets writers queue.
    """
    with Database(path) as database:
        for number in range(3):
            put(database, (f"old{number}", b"old %d" % number))
        put(database, ("same", b"0"))
        blocker = Log.open(path)
        blocker.acquire_commit_lock()
        put_ahead = database.store(io.BytesIO(b"appended ahead of its commit" * 4000))
        threads = [
            threading.Thread(target=put, args=(database, ("same", b"%d" % number), (f"new{number}", b"n")))
            for number in range(1, 5)
        ]
        for thread in threads:
            thread.start()
            time.sleep(0.02)
        database.store(io.BytesIO(b"taken by no commit" * 5000))
        blocker.release_commit_lock()
        blocker.close()
        for thread in threads:
            thread.join()
        with database.transaction() as transaction:
            transaction.put(("d", "large"), put_ahead)
            transaction.delete(("d", "old0"))
        database.store(io.BytesIO(b"the last upload" * 6000))


def states_of(path: Path) -> list[tuple[int, Snapshot]]:
    """For each commit the offset behind it, and the files after it; the empty state first."""
    with Database(path) as database:
        states: list[tuple[int, Snapshot]] = [(0, {})]
        for commit in database.commits():
            version = database.version_of(commit.root)
            files = {path: version.read_all(entry) for path, entry in version.walk(files_only=True)}
            offset, length = database._state.index.commit_place(commit.sequence)
            states.append((offset + 72 + (length + 7) // 8 * 8, files))
    return states


def places_to_cut(path: Path, first: int, last: int, beside: str) -> list[int]:
    """Offsets from ``first`` to the end: every one, or those around each record's edges, every 61st, and of
    the last commit, which begins at ``last``, every third.
    """
    size = path.stat().st_size
    if SCALE >= EVERY_BYTE:
        return list(range(first, size + 1))
    with Log.open(path, read_only=True) as log:
        edges = {record.offset for record in log.scan(end=size)} | {size}
    near = {edge + delta for edge in edges for delta in (-8, -1, 0, 1, 72)}
    chosen = near | set(range(first, size, 61)) | set(range(last + BESIDE.index(beside), size, len(BESIDE)))
    return sorted(place for place in chosen if first <= place <= size)


@pytest.fixture
def written(memory: Path) -> Path:
    """A log with batches of several commits."""
    path = memory / "x.svcdb"
    write_batches(path)
    return path


def batch_starts(path: Path) -> list[int]:
    with Database(path) as database:
        return sorted({commit.durable_end for commit in database.commits()})


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("beside", BESIDE)
def test_the_log_cut_anywhere_in_its_last_batches_holds_its_whole_commits(
    written: Path, memory: Path, beside: str
) -> None:
    states = states_of(written)
    starts = batch_starts(written)
    assert len(starts) < len(states) - 1, "no batch holds several commits"
    first, last = starts[-2:]
    whole = written.read_bytes()
    cut, kept = memory / "cut.svcdb", memory / "kept"
    if beside == "an older index":
        older = memory / "older.svcdb"
        older.write_bytes(whole[: starts[1]])
        Database(older).close()
        shutil.copytree(f"{older}.d", kept)
    elif beside == "the index of the whole log":
        shutil.copytree(f"{written}.d", kept)
    for length in places_to_cut(written, first, last, beside):
        cut.write_bytes(whole[:length])
        shutil.rmtree(f"{cut}.d", ignore_errors=True)
        if kept.exists():
            shutil.copytree(kept, f"{cut}.d")
        if beside == "the index of the whole log" and length < states[-1][0]:
            check_refused(cut, length)
            continue  # without what lies beside it, it is opened elsewhere
        with another_boot(), Database(cut) as database:
            ends = [end for end, _ in states if end <= length]
            assert database.head().sequence == len(ends) - 1, length
            assert snapshot(database) == states[len(ends) - 1][1], length
            kept_bytes = b"".join(saved.read_bytes() for saved in memory.glob("*.cut-*"))
            assert kept_bytes == whole[length - len(kept_bytes) : length], length
            for saved in memory.glob("*.cut-*"):
                saved.unlink()
            if length % 8 == 0:
                assert verify(database).damaged == [], length
                put(database, ("after", b"it goes on"))


def check_refused(path: Path, length: int) -> None:
    """What lies beside the log proves that it held more: nothing is written, and a reader is told."""
    with another_boot():
        with pytest.raises(
            TruncatedFile, match=r"proves that commit \d+ .* was durable.*move cut\.svcdb\.d away"
        ):
            Database(path)
        assert path.stat().st_size == length
        with Database(path, read_only=True) as database:
            assert "database.lost_commits" in {one.code for one in database.findings()}
            assert not verify(database).ok


def test_a_log_that_lost_bytes_while_the_machine_ran_is_refused(written: Path) -> None:
    """No crash makes a file shorter than what was written: somebody did, and nothing is thrown away."""
    whole = written.read_bytes()
    for length in (len(whole) - 1, len(whole) - 100, 200):
        with open(written, "r+b") as file:
            file.truncate(length)
        for _ in range(2):
            with pytest.raises(TruncatedFile, match="cut short"):
                Database(written)
        assert written.stat().st_size == length
        with open(written, "r+b") as file:
            file.write(whole)
    with Database(written) as database:
        assert verify(database).damaged == []
