"""The kernel without HTTP: durable puts and gets, against the bare disk and bare LMDB."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path

import lmdb
from report import Report, Row, interleave

from svc.database import Database

_VALUE = random.Random(0).randbytes(1024)


def run(report: Report, directory: Path) -> None:
    """Measures durable puts with 1 and 32 writers, and gets by path."""
    with Database(directory / "puts.svcdb") as database:
        for writers, goal in ((1, 0.25), (32, 0.75)):
            ours, raw = interleave(
                lambda writers=writers: _puts_a_second(database, writers),  # type: ignore[misc]
                lambda: _raw_appends_a_second(directory / "raw"),
                5,
            )
            report.add(
                Row(
                    f"kernel: durable put of 1 KiB, {writers} writers",
                    ours,
                    "1/s",
                    "append + fdatasync, 1 thread",
                    raw,
                    ours / raw,
                    goal,
                )
            )
    _gets(report, directory)


def _puts_a_second(database: Database, writers: int) -> float:
    stop = time.monotonic() + 1.0
    counts = [0] * writers
    run_id = time.monotonic_ns()

    def write(writer: int) -> None:
        while time.monotonic() < stop:
            with database.transaction() as transaction:
                transaction.put(("d", f"{run_id}-{writer}-{counts[writer]}"), _VALUE[8:] + os.urandom(8))
            counts[writer] += 1

    start = time.perf_counter()
    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - start)


def _raw_appends_a_second(path: Path) -> float:
    with open(path, "ab", buffering=0) as file:
        count = 0
        start = time.perf_counter()
        while time.perf_counter() - start < 1.0:
            file.write(_VALUE)
            os.fdatasync(file.fileno())
            count += 1
        return count / (time.perf_counter() - start)


def _gets(report: Report, directory: Path) -> None:
    count = 100_000
    names = [f"file {number}" for number in range(count)]
    with Database(directory / "gets.svcdb") as database:
        for start in range(0, count, 10_000):
            with database.transaction() as transaction:
                for name in names[start : start + 10_000]:
                    transaction.put(("d", name), b"%s" % name.encode() * 64)
        environment = lmdb.open(str(directory / "lmdb"), map_size=1 << 30, sync=False)
        with environment.begin(write=True) as write:
            for name in names:
                write.put(name.encode(), name.encode() * 64)
        picks = random.Random(1).choices(names, k=20_000)

        def ours() -> float:
            start = time.perf_counter()
            for name in picks:
                version = database.at()
                entry = version.get(("d", name))
                assert entry is not None
                version.read_all(entry)
            return len(picks) / (time.perf_counter() - start)

        def bare() -> float:
            start = time.perf_counter()
            for name in picks:
                with environment.begin() as read:
                    read.get(name.encode())
            return len(picks) / (time.perf_counter() - start)

        ours()
        mine, theirs = interleave(ours, bare, 5)
        report.add(
            Row("kernel: get by path, 100k files", mine, "1/s", "lmdb.get", theirs, mine / theirs, 0.5)
        )
        environment.close()
