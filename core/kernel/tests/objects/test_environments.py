"""An environment that LMDB has given up is opened anew, for all who share it, and not while it is read."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest

from svc.errors import DatabaseClosed, InsufficientStorage, ServiceUnavailable
from svc.objects import environments, writer_turns
from svc.objects.environments import SharedEnvironment, close_environment, open_environment
from svc.objects.key_index import CoverageMark, IndexedCommit, KeyIndex, Place, pack_place

NAMES = (b"a", b"b")
MAP_SIZE = 1 << 24


class GivenUp:
    """What LMDB's environment is after it could not write its first pages: nothing begins any more."""

    def __init__(self, environment: lmdb.Environment) -> None:
        self._environment = environment
        self.closed = False

    def begin(self, *arguments: object) -> lmdb.Transaction[bytes]:
        raise lmdb.PanicError("mdb_txn_begin")

    def readers(self) -> str:
        return self._environment.readers()

    def close(self) -> None:
        self.closed = True
        self._environment.close()


def give_up(shared: SharedEnvironment) -> GivenUp:
    assert shared._environment is not None
    given_up = GivenUp(shared._environment)
    shared._environment = given_up  # type: ignore[assignment]
    return given_up


def put(shared: SharedEnvironment, key: bytes, value: bytes) -> None:
    with shared.begin(1, True) as transaction:
        transaction.put(key, value)


def get(shared: SharedEnvironment, key: bytes) -> bytes | None:
    with shared.begin(1) as transaction:
        return transaction.get(key)


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[SharedEnvironment]:
    opened = open_environment(tmp_path / "data", MAP_SIZE, NAMES)
    put(opened, b"k", b"v")
    yield opened
    close_environment(opened)


def test_reads_and_writes_go_on_in_an_environment_that_is_opened_anew(shared: SharedEnvironment) -> None:
    given_up = give_up(shared)
    assert get(shared, b"k") == b"v"
    assert given_up.closed
    give_up(shared)
    put(shared, b"k", b"w")
    assert get(shared, b"k") == b"w"


def test_a_single_value_is_read_in_it_too(shared: SharedEnvironment) -> None:
    assert shared.get(1, b"k") == b"v"
    given_up = give_up(shared)
    assert shared.get(1, b"k") == b"v"
    assert shared.get(0, b"k") is None
    assert given_up.closed


def test_all_who_share_it_get_the_new_one(tmp_path: Path) -> None:
    place = Place(1, 10, 20, 1, 0, 1)
    packed = pack_place(*place)
    first, second = KeyIndex(tmp_path / "index"), KeyIndex(tmp_path / "index")
    first.write([(b"a" * 32, packed)], [IndexedCommit(1, 5, 6, b"r" * 32)], CoverageMark(128, 1, b"d" * 16))
    state = second.state()
    assert state == first.state()
    give_up(first._shared)
    assert second.find(b"a" * 32) == place
    assert second.state() != state
    assert first.commit_place(1) == (5, 6)
    assert dict(first.objects()) == {b"a" * 32: place}
    assert second.object_count() == 1
    first.leave_clean()
    first.close()
    with pytest.raises(DatabaseClosed):
        first.find(b"a" * 32)
    assert second.contains(b"a" * 32)
    second.close()


def test_it_is_not_closed_before_the_last_reader_has_ended(shared: SharedEnvironment) -> None:
    found: list[bytes | None] = []
    with shared.begin(1) as transaction:
        given_up = give_up(shared)
        thread = threading.Thread(target=lambda: found.append(get(shared, b"k")))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        assert not given_up.closed
        assert transaction.get(b"k") == b"v"
    thread.join(20)
    assert found == [b"v"]
    assert given_up.closed


def test_who_waits_too_long_is_told_when_to_come_back(
    shared: SharedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "_LONGEST_WAIT_SECONDS", 0.05)
    with shared.begin(1) as transaction:
        give_up(shared)
        for _ in range(2):
            with pytest.raises(ServiceUnavailable) as refused:
                get(shared, b"k")
            assert refused.value.details["retry_after"] == 1
        assert transaction.get(b"k") == b"v"
    assert get(shared, b"k") == b"v"


def test_a_directory_that_was_replaced_meanwhile_is_not_taken_for_the_old_one(
    shared: SharedEnvironment, tmp_path: Path
) -> None:
    shutil.copytree(tmp_path / "data", tmp_path / "other")
    shutil.rmtree(tmp_path / "data")
    give_up(shared)
    with pytest.raises(ServiceUnavailable):
        get(shared, b"k")
    (tmp_path / "other").rename(tmp_path / "data")
    with pytest.raises(ServiceUnavailable):
        get(shared, b"k")


def test_many_threads_at_once_open_it_anew_once_each_time(shared: SharedEnvironment) -> None:
    wrong: list[object] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                if get(shared, b"k") != b"v":
                    wrong.append("other bytes")
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    given_up = []
    for _ in range(20):
        if shared._environment is not None:
            given_up.append(give_up(shared))
        while shared._environment is None or isinstance(shared._environment, GivenUp):
            stop.wait(0.001)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert given_up and all(one.closed for one in given_up)


def test_on_a_full_disk_a_new_environment_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("svc.objects.environment_notes._set_note", full)
    with pytest.raises(InsufficientStorage, match="The disk is full"):
        open_environment(tmp_path / "view", 1 << 20, (b"data",))


def test_on_a_disk_that_fills_up_while_it_is_made_it_is_refused_in_words_and_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[lmdb.Environment] = []

    class Full:
        """An environment whose databases find no space."""

        def __init__(self, environment: lmdb.Environment) -> None:
            opened.append(environment)
            self._environment = environment

        def open_db(self, *_: object, **__: object) -> None:
            raise lmdb.DiskError("mdb_txn_commit")

        def __getattr__(self, name: str) -> object:
            return getattr(self._environment, name)

    make = environments._new_environment
    with monkeypatch.context() as patch:
        patch.setattr(environments, "_new_environment", lambda *given: Full(make(*given)))
        with pytest.raises(InsufficientStorage, match="The disk is full") as refused:
            open_environment(tmp_path / "view", 1 << 20, (b"data",))
    # Who holds the error does not keep the files open.
    shared = open_environment(tmp_path / "view", 1 << 20, (b"data",))
    with shared.begin(0, write=True) as transaction:
        transaction.put(b"key", b"value")
    close_environment(shared)
    assert len(opened) == 1 and refused.value.__cause__ is not None


def test_what_is_mapped_has_its_blocks_before_it_is(tmp_path: Path) -> None:
    opened = open_environment(tmp_path / "index", 1 << 20, [b"a"])
    found = os.stat(tmp_path / "index" / "lock.mdb")
    close_environment(opened)
    assert found.st_blocks * 512 >= found.st_size > 0


WRITER = """
import sys, time
from pathlib import Path
from svc.objects.environments import open_environment

shared = open_environment(Path(sys.argv[1]), 1 << 24, (b"a", b"b"))
number, seconds = 0, float(sys.argv[2])
while True:
    with shared.begin(1, True) as transaction:
        number += 1
        transaction.put(b"n", b"%d" % number)
        if number == 1:
            print("writes", flush=True)
        time.sleep(seconds)
"""


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Callable[[float], None]]:
    """Begins a process that writes again and again, each time for some seconds."""
    with contextlib.ExitStack() as ends:

        def start(seconds: float) -> None:
            command = [sys.executable, "-c", WRITER, str(tmp_path / "data"), str(seconds)]
            process = ends.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            ends.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == "writes\n"

        yield start


def test_who_writes_again_and_again_is_behind_those_who_wait(
    shared: SharedEnvironment, writer: Callable[[float], None]
) -> None:
    writer(0.02)
    for _ in range(20):
        before = int(get(shared, b"n") or 0)
        with shared.begin(1, True) as transaction:
            assert int(transaction.get(b"n") or 0) <= before + 2


def test_behind_one_that_hangs_one_thread_waits_and_the_others_are_told(
    shared: SharedEnvironment, writer: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_turns, "LONGEST_WAIT_SECONDS", 0.2)
    writer(2)
    told: list[ServiceUnavailable] = []

    def begin() -> None:
        try:
            with shared.begin(1, True):
                pass
        except ServiceUnavailable as error:
            told.append(error)

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 3
    assert told[0].details["retry_after"] == 1


def test_all_threads_go_on_while_one_opens_what_another_process_writes_to(
    tmp_path: Path, writer: Callable[[float], None]
) -> None:
    writer(2)
    opened: list[SharedEnvironment] = []
    thread = threading.Thread(
        target=lambda: opened.append(open_environment(tmp_path / "data", MAP_SIZE, NAMES))
    )
    thread.start()
    turns = 0
    while not opened:
        time.sleep(0.01)
        turns += 1
    thread.join()
    close_environment(opened[0])
    assert turns > 20
