"""Large contents come back byte for byte, however they arrive and whatever interrupts them."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from svc.database import Database
from svc.errors import InsufficientStorage, PayloadTooLarge
from svc.objects.content import ContentWriter
from svc.objects.expected_chunks import ExpectedChunks
from svc_testing.faults import Fault, inject

WINDOW = 1024 * 1024
HEADROOM = 256 * 1024


class Pieces:
    """A stream that knows ``read`` only, and gives pieces of odd sizes."""

    def __init__(self, content: bytes) -> None:
        self._stream = io.BytesIO(content)
        self._random = random.Random(len(content))

    def read(self, size: int = -1, /) -> bytes:
        return self._stream.read(self._random.randint(1, size))


def read_back(database: Database, name: str) -> bytes:
    version = database.at()
    entry = version.get((name,))
    assert entry is not None
    return version.read_all(entry)


@pytest.mark.parametrize(
    "size",
    [
        64 * 1024 + 1,
        WINDOW - 1,
        WINDOW,
        WINDOW + 1,
        WINDOW + HEADROOM,
        WINDOW + HEADROOM + 1,
        2 * WINDOW,
        5 * WINDOW + 12345,
    ],
)
@pytest.mark.parametrize("stream", [io.BytesIO, Pieces])
def test_a_content_of_any_size_comes_back(tmp_path: Path, size: int, stream: type) -> None:
    content = random.Random(size).randbytes(size)
    with Database(tmp_path / "x.svcdb") as database:
        with database.transaction() as transaction:
            transaction.put(("streamed",), database.store(stream(content)))
            transaction.put(("whole",), content)
        assert read_back(database, "streamed") == content
        assert read_back(database, "whole") == content
        version = database.at()
        assert version.get(("streamed",)).record == version.get(("whole",)).record  # type: ignore[union-attr]


def test_what_repeats_is_stored_once(tmp_path: Path) -> None:
    zeros = bytes(8 * WINDOW)
    with Database(tmp_path / "x.svcdb") as database:
        with database.transaction() as transaction:
            transaction.put(("zeros",), database.store(io.BytesIO(zeros)))
        assert read_back(database, "zeros") == zeros
    assert (tmp_path / "x.svcdb").stat().st_size < 64 * 1024


def test_a_full_disk_in_the_middle_harms_no_other_content(tmp_path: Path) -> None:
    first, second = (random.Random(seed).randbytes(4 * WINDOW) for seed in (1, 2))
    with Database(tmp_path / "x.svcdb") as database:
        with inject(Fault("svc.log.FileOperations.pwritev", 2, "ENOSPC")), pytest.raises(InsufficientStorage):
            database.store(io.BytesIO(first))
        with database.transaction() as transaction:
            transaction.put(("second",), database.store(io.BytesIO(second)))
            transaction.put(("first",), database.store(io.BytesIO(first)))
        assert read_back(database, "first") == first
        assert read_back(database, "second") == second


def test_the_limit_holds_for_streams_of_either_kind(tmp_path: Path) -> None:
    with Database(tmp_path / "x.svcdb") as database:
        for stream in (io.BytesIO, Pieces):
            seen: list[int] = []
            with pytest.raises(PayloadTooLarge):
                database.store(stream(bytes(3 * WINDOW)), limit=2 * WINDOW, on_bytes=seen.append)
            assert 2 * WINDOW - HEADROOM <= sum(seen) <= 2 * WINDOW


_GREENLETS = """
from gevent import monkey
monkey.patch_all()
from svc.executor import use_executor
from svc_server.gevent_executor import GeventExecutor
use_executor(GeventExecutor())
import io, random, sys
import gevent
from svc.database import Database, pause


class Slow(io.BytesIO):
    def readinto(self, buffer):
        pause()
        return super().readinto(buffer)


contents = {f"f{n}": random.Random(n).randbytes(3_000_000 + n) for n in range(8)}
with Database(sys.argv[1]) as database:
    def upload(name):
        stored = database.store(Slow(contents[name]))
        with database.transaction() as transaction:
            transaction.put((name,), stored)

    jobs = {name: gevent.spawn(upload, name) for name in contents}
    gevent.sleep(0.01)
    for name in ("f1", "f5"):
        jobs[name].kill()  # one that is cut off gives nothing back that others still use
    gevent.joinall(list(jobs.values()))
    for name, content in contents.items():
        version = database.at()
        entry = version.get((name,))
        assert (entry is None and name in ("f1", "f5")) or version.read_all(entry) == content, name
print("done")
"""


def test_who_gives_up_waits_for_the_thread_that_still_works(tmp_path: Path) -> None:
    waits: list[str] = []

    def begin_blocking(function: Callable[..., None], *arguments: object) -> Callable[[], None]:
        def wait() -> None:
            waits.append(function.__name__)
            if len(waits) == 1:
                raise KeyboardInterrupt
            function(*arguments)

        return wait

    with Database(tmp_path / "x.svcdb") as database:
        writer = ContentWriter(database.objects, begin_blocking=begin_blocking)
        with pytest.raises(KeyboardInterrupt):
            writer.store_bytes(random.Random(3).randbytes(3 * WINDOW))
    assert waits == ["_store", "_store"]


def test_uploads_at_once_do_not_mix_and_one_may_be_killed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _GREENLETS, str(tmp_path / "x.svcdb")], capture_output=True, text=True
    )
    assert done.stdout == "done\n", done.stderr


def test_a_file_that_is_stored_again_is_cut_as_it_would_be_elsewhere(tmp_path: Path) -> None:
    content = bytearray(random.Random(3).randbytes(5_000_000))
    with Database(tmp_path / "a.svcdb") as database:
        for changed in (0, 2_000_000, 4_999_999):
            content[changed] ^= 1
            like = database.at().get(("f",))
            with database.transaction() as transaction:
                transaction.put(("f",), database.store(io.BytesIO(content), like=like))
        again = database.at().get(("f",))
        assert read_back(database, "f") == content
    with Database(tmp_path / "b.svcdb") as database:
        with database.transaction() as transaction:
            transaction.put(("f",), database.store(io.BytesIO(content)))
        once = database.at().get(("f",))
    assert again is not None and once is not None
    assert (again.hash, again.record) == (once.hash, once.record)


def test_only_chunks_that_this_process_has_cut_are_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = random.Random(4).randbytes(1_000_000)
    matched: list[bool] = []
    match = ExpectedChunks.match

    def note(self: ExpectedChunks, view: memoryview) -> tuple[bytes, int] | None:
        found = match(self, view)
        matched.append(found is not None)
        return found

    monkeypatch.setattr(ExpectedChunks, "match", note)
    for _ in range(2):
        matched.clear()
        with Database(tmp_path / "a.svcdb") as database:
            for _ in range(2):
                like = database.at().get(("f",))
                assert not any(matched)
                with database.transaction() as transaction:
                    transaction.put(("f",), database.store(io.BytesIO(content), like=like))
            assert any(matched)


def test_what_is_stored_already_is_not_synced_ahead_of_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bytearray(random.Random(5).randbytes(3_000_000))
    with Database(tmp_path / "a.svcdb") as database:
        syncs: list[int] = []
        monkeypatch.setattr(type(database._state), "sync_ahead", lambda _: syncs.append(1))
        for expected in (1, 1):
            with database.transaction() as transaction:
                transaction.put(("f",), database.store(io.BytesIO(content)))
            assert len(syncs) == expected
            content[1_000_000] ^= 1
