"""The kernel without HTTP: durable puts and gets, against the bare disk and bare LMDB."""

from __future__ import annotations

import os
import random
import threading
import time
from functools import partial
from pathlib import Path

import lmdb
from measurement import Bench, kibibyte
from report import interleave

from svc.database import Database

_VALUE = kibibyte(0)


def durable_puts(bench: Bench) -> None:
    """Durable puts of 1 KiB by 1 and by 32 threads, beside append + fdatasync of one thread."""
    with Database(bench.directory / "puts.svcdb") as database:
        for writers, goal in ((1, 0.25), (32, 0.75)):
            ours, raw = interleave(
                bench.rounds(4),
                partial(_puts_a_second, database, writers),
                partial(raw_appends_a_second, bench.directory / "raw"),
            )
            work = f"kernel: durable put of 1 KiB, {writers} writer{'s' if writers > 1 else ''}"
            bench.report.compare(work, ours, "1/s", "append + fdatasync, 1 thread", raw, goal)


def gets_by_path(bench: Bench) -> None:
    """Gets by path among 100,000 files of 1 KiB, beside lmdb.get."""
    names = [f"file {number}" for number in range(bench.choose(100_000, 10_000))]
    with Database(bench.directory / "gets.svcdb") as database:
        for start in range(0, len(names), 10_000):
            with database.transaction() as transaction:
                for name in names[start : start + 10_000]:
                    transaction.put(("d", name), _content(name))
        with lmdb.open(str(bench.directory / "lmdb"), map_size=1 << 30, sync=False) as environment:
            with environment.begin(write=True) as write:
                for name in names:
                    write.put(name.encode(), _content(name))
            picks = random.Random(1).choices(names, k=20_000)
            _svc_gets(database, picks)  # fills the caches of nodes, as those of LMDB are filled
            ours, theirs = interleave(
                bench.rounds(5), lambda: _svc_gets(database, picks), lambda: _lmdb_gets(environment, picks)
            )
    bench.report.compare(f"kernel: get by path, {len(names):,} files", ours, "1/s", "lmdb.get", theirs, 0.5)


def raw_appends_a_second(path: Path, seconds: float = 1.0) -> float:
    """Appends 1 KiB and syncs, again and again for some time: what the disk gives to one thread."""
    with open(path, "ab", buffering=0) as file:
        count = 0
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            file.write(_VALUE)
            os.fdatasync(file.fileno())
            count += 1
        return count / (time.perf_counter() - start)


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


def _content(name: str) -> bytes:
    return (name.encode() * 128)[:1024]


def _svc_gets(database: Database, picks: list[str]) -> float:
    content = b""
    start = time.perf_counter()
    for name in picks:
        version = database.at()
        entry = version.get(("d", name))
        assert entry is not None
        content = version.read_all(entry)
    elapsed = time.perf_counter() - start
    assert content == _content(picks[-1])
    return len(picks) / elapsed


def _lmdb_gets(environment: lmdb.Environment, picks: list[str]) -> float:
    content: bytes | None = None
    start = time.perf_counter()
    for name in picks:
        with environment.begin() as read:
            content = read.get(name.encode())
    elapsed = time.perf_counter() - start
    assert content == _content(picks[-1])
    return len(picks) / elapsed
