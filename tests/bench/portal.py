"""Pages of the portal in a database with very much of everything, and in a small one.

They are measured in one process, by the time of the processor: a page waits for no disk and no network.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from directories import SMALL, path_of, unsynced
from falcon.testing import TestClient
from measurement import Bench
from svc_query.indexing import finish_work

from svc.database import Database
from svc_testing import load_with_testing_auth, serve_in_process

_LIMIT_MS = 200
_FLAT = 3.0
_ROUNDS = 5
_FILE = ("log", "file.txt")
_PLUGINS = (
    *("users", "auth.self", "sharing", "files", "history", "versions", "backup", "events", "events.sse"),
    *("metrics", "tasks", "task.gc", "task.verify", "query", "index.exact", "index.trigram", "portal"),
)
_PAGES = (
    *(
        "files/",
        "files/{files}",
        "files/{files}?sort=size",
        "files/{files}?filter=99",
        "files/{files}/0000007",
    ),
    *("history/{file}", "history/{files}", "blame/{file}", "deleted/{files}", "past/{files}?version={root}"),
    *("compare/{file}?from={root}&to=HEAD", "compare/{files}?from={root}&to=HEAD"),
    *("log", "commits/{root}", "versions", "versions/snapshot?name=s1", "versions/forks"),
    *("versions/fork?name=f1", "versions/merge?fork=f1", "search?q=0000007", "events", "tasks", "people"),
    *(
        "access/{files}",
        "state",
        "metrics",
        "plugins",
        "plugins/files",
        "backups",
        "collection",
        "verification",
    ),
)


class Sizes(NamedTuple):
    """How much a database has."""

    files: int
    commits: int
    snapshots: int
    forks: int


LARGE, FEW = Sizes(1_000_000, 50_000, 1_000, 200), Sizes(SMALL, 100, 10, 5)


def pages(bench: Bench) -> None:
    """Pages of the portal with 1,000,000 entries, 50,000 commits, 1,000 snapshots and 200 forks."""
    large = bench.choose(LARGE, Sizes(20_000, 1_000, 100, 20))
    measured = [
        measure(bench.directory / f"{sizes.files}.svcdb", sizes, bench.rounds(_ROUNDS))
        for sizes in (large, FEW)
    ]
    for page in _PAGES:
        ours, theirs = (times[page] for times in measured)
        bench.report.limit(f"page {page}", ours, "ms", _LIMIT_MS)
        peer = "the same with little of everything"
        bench.report.compare(f"page {page}", ours, "ms", peer, theirs, _FLAT, at_most=True)


def measure(path: Path, sizes: Sizes, rounds: int) -> dict[str, list[float]]:
    """Fills a database, unless it is there, and returns the milliseconds of each page."""
    with _served(path, sizes) as client:
        snapshots = client.simulate_get("/versions/snapshots").json["snapshots"]
        names = {"files": sizes.files, "file": "/".join(_FILE), "root": snapshots[-1]["root_hash"]}
        found = {}
        for page in _PAGES:
            url = f"/portal/{page.format(**names)}"
            _milliseconds(client, url)  # templates are compiled, views are current
            found[page] = [_milliseconds(client, url) for _ in range(rounds)]
        return found


def _milliseconds(client: TestClient, url: str) -> float:
    begin = time.process_time()
    answer = client.simulate_get(url)
    spent = (time.process_time() - begin) * 1000
    assert answer.status_code == 200, (url, answer.text)
    return spent


@contextmanager
def _served(path: Path, sizes: Sizes) -> Iterator[TestClient]:
    """Serves a database that has so much of everything."""
    is_new = not path.exists()
    with serve_in_process(path, load_with_testing_auth(*_PLUGINS)) as (app, database, _):
        client = TestClient(app)
        if is_new:
            with unsynced():
                _fill(database, client, sizes)
            finish_work(database)  # a server has another process for that
        yield client


def _fill(database: Database, client: TestClient, sizes: Sizes) -> None:
    for start in range(0, sizes.files, 20_000):
        with database.transaction() as transaction:
            for number in range(start, min(start + 20_000, sizes.files)):
                transaction.put(path_of(sizes.files, number), b"%010d" % number)
    every = max(1, sizes.commits // sizes.snapshots)
    for number in range(sizes.commits):
        with database.transaction(message=f"change {number}") as transaction:
            changed = path_of(sizes.files, number * 7 % sizes.files) if number % 10 else _FILE
            transaction.put(changed, b"line %d\n" % number)
        if number % every == 0:
            _post(client, "/versions/snapshots", f"s{number // every}")
        if number < sizes.forks:
            _post(client, "/versions/forks", f"f{number}")


def _post(client: TestClient, url: str, name: str) -> None:
    answer = client.simulate_post(url, json={"name": name})
    assert answer.status_code == 201, answer.text


if __name__ == "__main__":
    import sys

    directory = Path(sys.argv[1])
    for kind in (FEW, LARGE):
        for name, times in measure(directory / f"{kind.files}.svcdb", kind, _ROUNDS).items():
            print(f"{kind.files:9} {statistics.median(times):8.1f} ms  {name}", flush=True)
