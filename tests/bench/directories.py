"""One directory of a million files: listing pages, lookups and updates stay flat."""

from __future__ import annotations

import random
import time
from itertools import islice
from pathlib import Path

from report import Report, Row, interleave

from svc.database import Database

_LARGE = 1_000_000
_SMALL = 100


def run(report: Report, directory: Path) -> None:
    """Measures updates, lookups, pages and a diff in directories of 100 and of 1,000,000 files."""
    with Database(directory / "directories.svcdb") as database:
        _fill(database, "small", _SMALL)
        start = time.perf_counter()
        _fill(database, "large", _LARGE)
        report.add(
            Row(
                "import of 1,000,000 files of 10 bytes in one directory",
                _LARGE / (time.perf_counter() - start),
                "1/s",
                "no peer",
                None,
                _LARGE / (time.perf_counter() - start),
                None,
            )
        )
        _compare(report, "update", database, _update, 3.0)
        _compare(report, "lookup", database, _lookup, None)
        _compare(report, "page of 100 entries", database, _page, None)
        _diff(report, database)


def _fill(database: Database, name: str, count: int) -> None:
    for start in range(0, count, 20_000):
        with database.transaction() as transaction:
            for number in range(start, min(start + 20_000, count)):
                transaction.put((name, f"{number:07}"), b"%010d" % number)


def _compare(report: Report, what: str, database: Database, work, goal: float | None) -> None:  # type: ignore[no-untyped-def]
    large, small = interleave(
        lambda: work(database, "large", _LARGE), lambda: work(database, "small", _SMALL), 5
    )
    report.add(
        Row(
            f"{what} in a directory of 1,000,000 files",
            large * 1e6,
            "µs",
            "the same in one of 100",
            small * 1e6,
            large / small,
            goal,
            at_most=True,
        )
    )


def _update(database: Database, name: str, count: int) -> float:
    picks = random.Random(time.monotonic_ns()).choices(range(count), k=200)
    start = time.perf_counter()
    for number in picks:
        with database.transaction() as transaction:
            transaction.put((name, f"{number:07}"), b"%d" % time.monotonic_ns())
    return (time.perf_counter() - start) / len(picks)


def _lookup(database: Database, name: str, count: int) -> float:
    picks = random.Random(time.monotonic_ns()).choices(range(count), k=2000)
    version = database.at()
    start = time.perf_counter()
    for number in picks:
        assert version.get((name, f"{number:07}")) is not None
    return (time.perf_counter() - start) / len(picks)


def _page(database: Database, name: str, count: int) -> float:
    version = database.at()
    picks = random.Random(time.monotonic_ns()).choices(range(max(1, count - 100)), k=200)
    start = time.perf_counter()
    for number in picks:
        assert list(islice(version.entries((name,), after=f"{number:07}"), 100))
        version.entry_count((name,))
    return (time.perf_counter() - start) / len(picks)


def _diff(report: Report, database: Database) -> None:
    before = database.at()
    with database.transaction() as transaction:
        for number in random.Random(5).sample(range(_LARGE), 10):
            transaction.put(("large", f"{number:07}"), b"changed")
    after = database.at()
    times = []
    for _ in range(5):
        database.objects.cache.clear()
        start = time.perf_counter()
        assert len(list(before.diff(after))) == 10
        times.append((time.perf_counter() - start) * 1000)
    report.add(
        Row(
            "diff of two versions of 1,000,000 files, 10 changes",
            sorted(times)[2],
            "ms",
            "limit of 10 ms",
            None,
            sorted(times)[2],
            10,
            at_most=True,
        )
    )
