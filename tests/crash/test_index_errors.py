"""The disk refuses to write what lies beside the log: LMDB gives up, and svc does not.

LMDB writes the pages that say which state is the last by ``pwrite``, as nobody else does here: where that
fails it gives the environment up, for reads too. libfiu makes it fail.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from crash.clients import JournalingClient, Load, check_server
from crash.faulty_disk import FaultyDisk, with_libfiu
from crash.scale import SEED, scaled
from svc_blackbox.client import Client, files
from svc_blackbox.server import run_svc

CALL = "posix/io/rw/pwrite"
OPENED_ANEW = "is opened anew"
TESTS = Path(__file__).parents[1]


class Reader:
    """Reads one file again and again, by connections that every worker gets some of; all must succeed."""

    def __init__(self, url: str, path: str, content: bytes) -> None:
        self.answers = 0
        self.wrong: list[object] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(url, path, content), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        deadline = time.monotonic() + 60
        while self.answers <= 20 and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.02)
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        assert self.wrong == []
        assert self.answers > 20

    def _work(self, url: str, path: str, content: bytes) -> None:
        while not self._stop.is_set():
            with Client(url) as client:
                for response in (client.get(files(path)), client.get(files(""), depth=-1, limit=5)):
                    if response.status != 200:
                        self.wrong.append((response.status, response.body))
                    self.answers += 1
                if client.read(path) != content:
                    self.wrong.append("other bytes")


def wait_for_failures(server: FaultyDisk, load: Load, count: int) -> None:
    """Lets a part of the writes fail until the server has noted so many that LMDB gave up for."""
    server.tell(f"enable_random name={CALL},probability=0.1,failinfo=5")
    deadline = time.monotonic() + 60
    while server.log_text().count(OPENED_ANEW) < count and not load.failures:
        assert time.monotonic() < deadline, load.statuses
        time.sleep(0.02)


@with_libfiu
@pytest.mark.timeout(4000)
def test_reads_go_on_while_the_key_index_cannot_be_written_and_writes_do_afterwards(tmp_path: Path) -> None:
    """One write of LMDB in ten fails, again and again; no worker is started anew."""
    server = FaultyDisk(tmp_path / "index.svcdb", workers=2)
    load = Load((JournalingClient(f"c{number}", SEED, reads=0.4) for number in range(8)), reconnect=True)
    try:
        server.start().client().store("read", b"it is there" * 500)
        reader = Reader(server.url, "read", b"it is there" * 500)
        load.start(server.url)
        for _ in range(scaled(1, most=20)):
            load.wait_for_answers(20)
            wait_for_failures(server, load, server.log_text().count(OPENED_ANEW) + 3)
            server.tell(f"disable name={CALL}")
            load.wait_for_answers(40)
        load.stop()
        reader.stop()
        assert set(load.statuses) <= {200, 201, 404, 503, 507}, load.statuses
        assert sum(one.cuts for one in load.clients) == 0
        assert server.client().get("/system/health").json()["status"] == "healthy"
        check_server(server.client(), load.clients)
        assert server.stop() == 0
    finally:
        server.close()
    assert "Traceback" not in server.log_text()
    run_svc("verify", "-D", server.database)


@with_libfiu
@pytest.mark.timeout(4000)
def test_while_no_write_of_the_index_succeeds_none_is_acknowledged_and_all_are_read(tmp_path: Path) -> None:
    server = FaultyDisk(tmp_path / "index.svcdb", workers=2)
    try:
        client = server.start().client()
        for number in range(20):
            client.store(f"f{number}", b"%d" % number)
        server.tell(f"enable name={CALL},failinfo=5")
        for number in range(30):
            with Client(server.url) as fresh:
                assert fresh.put_file(f"no{number}", b"x").status in (503, 507)
                assert fresh.read(f"f{number % 20}") == b"%d" % (number % 20)
        server.tell(f"disable name={CALL}")
        client.store("after", b"it goes on")
        for number in range(30):
            # What was answered 503 may be there, and what was answered 507 is not.
            assert client.get(files(f"no{number}")).status in (200, 404)
        server.kill()
        run_svc("verify", "-D", server.database)
    finally:
        server.close()


@with_libfiu
def test_readers_of_views_and_of_the_index_go_on_in_a_process_of_many_threads(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            "fiu-run",
            "-x",
            sys.executable,
            "-m",
            "crash.index_driver",
            str(tmp_path / "x.svcdb"),
            str(scaled(3, most=20)),
        ],
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=1000,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    run_svc("verify", "-D", tmp_path / "x.svcdb")
