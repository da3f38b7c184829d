"""Directories of a hundred and of a million files: updates, lookups, pages and differences stay flat."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from unittest.mock import patch

from measurement import Bench
from report import Panel, interleave, seconds_of
from servers import svc

from svc.database import Database
from svc.log.file_operations import FileOperations

SMALL = 100
_CHANGES = 10

Work = Callable[[Database, int], float]


def large_count(bench: Bench) -> int:
    """How many files the large directory has."""
    return bench.choose(1_000_000, 50_000)


def directories(bench: Bench) -> Path:
    """A database of directories of many sizes, the largest one last; it is made once in a run."""

    def make(directory: Path) -> Path:
        directory.mkdir()
        path = directory / "directories.svcdb"
        seconds = database_of(path, _sizes(bench))
        work = f"import of {large_count(bench):,} files of 10 bytes in one directory"
        bench.report.limit(work, [seconds], "s")
        return path

    return bench.material("directories", make)


def database_of(path: Path, sizes: Sequence[int]) -> float:
    """Makes a database with the default plugins, and fills directories, each named by its size.

    Returns:
        Seconds that it took to fill the last of them.
    """
    seconds = 0.0
    with svc(path):
        pass
    with Database(path) as database:
        for count in sizes:
            seconds = seconds_of(partial(_fill, database, count))
    return seconds


def path_of(count: int, number: int) -> tuple[str, ...]:
    """The path of a file in the directory of a size."""
    return str(count), f"{number:07}"


def updates(bench: Bench) -> None:
    """Updates, lookups and pages in a directory of 1,000,000 files, beside one of 100."""
    with Database(directories(bench)) as database:
        _compare(bench, database, "durable update of one file", _update, 3.0)
        with unsynced():
            _compare(bench, database, "update of one file, the disk's sync left out", _update, 3.0)
        _compare(bench, database, "lookup", _lookup)
        _compare(bench, database, "page of 100 entries", _page)
        _curves(bench, database)


def differences(bench: Bench) -> None:
    """The difference of two versions of 1,000,000 files with 10 changes, nothing cached."""
    count = large_count(bench)
    with Database(directories(bench)) as database:
        times = []
        for turn in range(bench.rounds(5)):
            before = database.at()
            with database.transaction() as transaction:
                for number in random.Random(turn).sample(range(count), _CHANGES):
                    transaction.put(path_of(count, number), b"changed %d" % turn)
            after = database.at()
            database.objects.cache.clear()
            start = time.perf_counter()
            changes = list(before.diff(after))
            times.append((time.perf_counter() - start) * 1000)
            assert len(changes) == _CHANGES
    bench.report.limit(f"diff of two versions of {count:,} files, {_CHANGES} changes", times, "ms", 10)


def unsynced() -> AbstractContextManager[object]:
    """Leaves out the disk's sync: what is left is svc's own work."""
    return patch.object(FileOperations, "fdatasync", staticmethod(lambda _: None))


def _sizes(bench: Bench) -> tuple[int, ...]:
    return SMALL, 1_000, 10_000, *bench.choose((100_000,), ()), large_count(bench)


def _fill(database: Database, count: int) -> None:
    for start in range(0, count, 20_000):
        with database.transaction() as transaction:
            for number in range(start, min(start + 20_000, count)):
                transaction.put(path_of(count, number), b"%010d" % number)


def _compare(bench: Bench, database: Database, what: str, work: Work, goal: float | None = None) -> None:
    count = large_count(bench)
    large, small = interleave(
        bench.rounds(5), lambda: work(database, count) * 1e6, lambda: work(database, SMALL) * 1e6
    )
    name, peer = f"{what} in a directory of {count:,}", f"the same in one of {SMALL}"
    bench.report.compare(name, large, "µs", peer, small, goal, at_most=True)


def _update(database: Database, count: int) -> float:
    picks = random.Random(time.monotonic_ns()).choices(range(count), k=200)
    start = time.perf_counter()
    for number in picks:
        with database.transaction() as transaction:
            transaction.put(path_of(count, number), b"%d" % time.monotonic_ns())
    return (time.perf_counter() - start) / len(picks)


def _lookup(database: Database, count: int) -> float:
    picks = random.Random(time.monotonic_ns()).choices(range(count), k=2000)
    version = database.at()
    start = time.perf_counter()
    for number in picks:
        assert version.get(path_of(count, number)) is not None
    return (time.perf_counter() - start) / len(picks)


def _page(database: Database, count: int) -> float:
    version = database.at()
    picks = random.Random(time.monotonic_ns()).choices(range(max(1, count - 100)), k=200)
    start = time.perf_counter()
    for number in picks:
        assert list(islice(version.entries((str(count),), after=f"{number:07}"), 100))
        version.entry_count((str(count),))
    return (time.perf_counter() - start) / len(picks)


def _curves(bench: Bench, database: Database) -> None:
    """Draws the cost of one file against the size of its directory."""
    panel = Panel("one file of a directory", "files in the directory", "microseconds")
    works: dict[str, tuple[Work, bool]] = {
        "durable update": (_update, True),
        "update without the sync": (_update, False),
        "lookup": (_lookup, True),
    }
    points: dict[str, dict[float, list[float]]] = {label: {} for label in works}
    for _ in range(bench.rounds(3)):
        for count in _sizes(bench):
            for label, (work, synced) in works.items():
                with nullcontext() if synced else unsynced():
                    points[label].setdefault(count, []).append(work(database, count) * 1e6)
    for label, line in points.items():
        bench.report.curve(panel, label, line)
