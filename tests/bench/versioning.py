"""Snapshots, forks, comparisons and histories over HTTP, in large databases and in small ones."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from client import Client
from directories import SMALL, database_of, directories, large_count, path_of, unsynced
from measurement import Bench
from report import interleave, seconds_of
from servers import svc

from svc.database import Database

_LIMIT = 10
_CHANGES = 10
_REPEATS = 20
_names = itertools.count()


@dataclass(slots=True)
class _Side:
    """One of the two databases: how many files it has, who asks for it, and what was measured, in ms."""

    count: int
    client: Client
    snapshots: list[float] = field(default_factory=list)
    forks: list[float] = field(default_factory=list)
    comparisons: list[float] = field(default_factory=list)


def versions(bench: Bench) -> None:
    """Snapshot, fork and compare over HTTP, in a database of 1,000,000 files and in one of 100."""
    with _sides(bench) as sides:
        for turn, side in itertools.product(range(bench.rounds(25)), sides):
            _measure(side, timed=turn > 0)
    large, small = sides
    what, peer = f"of {large.count:,} files", f"the same of {small.count:,}"
    for work, ours, theirs, limit in (
        ("snapshot", large.snapshots, small.snapshots, _LIMIT),
        ("fork", large.forks, small.forks, _LIMIT),
        (f"compare over HTTP, {_CHANGES} changes,", large.comparisons, small.comparisons, _LIMIT),
    ):
        bench.report.limit(f"{work} {what}", ours, "ms", limit)
        # Independent of the size: twice the time is more than a busy disk explains.
        bench.report.compare(f"{work} {what}", ours, "ms", peer, theirs, 2.0, at_most=True)


def history(bench: Bench) -> None:
    """The history of a file that 10 commits touched, among 5,000 commits and among 20."""
    counts = bench.choose(5_000, 500), 2 * _CHANGES
    with ExitStack() as stack:
        clients = []
        for count in counts:
            path = bench.directory / f"{count}.svcdb"
            _commit(path, count)
            clients.append(Client(stack.enter_context(svc(path))))
            _history(clients[-1])  # the view is current then
        many, few = interleave(bench.rounds(5), *(partial(_history, client) for client in clients))
    work = f"history of a file, {_CHANGES} of {counts[0]:,} commits touched it"
    bench.report.compare(work, many, "ms", f"{_CHANGES} of {counts[1]}", few, 2.0, at_most=True)


def _commit(path: Path, count: int) -> None:
    """Makes a database of as many commits, of which some touch the same file."""
    database_of(path, ())
    with unsynced(), Database(path) as database:
        for number in range(count):
            name = "touched" if number % (count // _CHANGES) == 0 else f"other {number % 100}"
            with database.transaction() as transaction:
                transaction.put((name,), b"%d" % number)


def _history(client: Client) -> float:
    """Milliseconds that the history of the file takes, the mean of some."""
    start = time.perf_counter()
    for _ in range(_REPEATS):
        found = client.get_json("/versions/history/touched?commits=true")
        assert len(found["history"]) == _CHANGES, found
    return (time.perf_counter() - start) * 1000 / _REPEATS


@contextmanager
def _sides(bench: Bench) -> Iterator[tuple[_Side, _Side]]:
    """The two databases, each served.

    Views of a million new files take a while; no background process makes them meanwhile.
    """
    paths = {large_count(bench): directories(bench), SMALL: bench.directory / "small.svcdb"}
    database_of(paths[SMALL], (SMALL,))
    with ExitStack() as stack:
        sides = []
        for count, path in paths.items():
            server = stack.enter_context(svc(path, "--background", "false"))
            sides.append(_Side(count, Client(server)))
        yield sides[0], sides[1]


def _measure(side: _Side, *, timed: bool) -> None:
    """Changes ten files, then takes a snapshot, makes a fork, and compares with what was before."""
    client, name = side.client, f"bench-{next(_names)}"
    step = max(1, side.count // _CHANGES)
    paths = [f"/files/{'/'.join(path_of(side.count, turn * step))}" for turn in range(_CHANGES)]
    before = client.version(paths[0])
    for path in paths:
        client.put(path, name.encode(), expected=200)
    snapshot = seconds_of(lambda: client.post("/versions/snapshots", {"name": name}, expected=201))
    fork = seconds_of(lambda: client.post("/versions/forks", {"name": name}, expected=201))
    start = time.perf_counter()
    found = client.get_json(f"/versions/compare?from={before}&to={name}")
    comparison = time.perf_counter() - start
    assert len(found["changes"]) == _CHANGES, found
    if timed:
        side.snapshots.append(snapshot * 1000)
        side.forks.append(fork * 1000)
        side.comparisons.append(comparison * 1000)
