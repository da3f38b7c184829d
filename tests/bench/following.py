"""Views that follow: what a million files cost them, new ones and those that one request moves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from directories import unsynced
from measurement import Bench
from report import seconds_of

from svc.database import Database, Transaction, ViewReader
from svc.paths import Path as TreePath
from svc.plugins import initialize, load_plugins, register_views
from svc.tree import Entry

_IN_DIRECTORY = 1_000
_IN_COMMIT = 10_000
_KIBIBYTE = 1024


def views(bench: Bench) -> None:
    """Views catching up with 1,000,000 new files, and with those copied, moved, deleted, restored at once."""
    count = bench.choose(1_000_000, 20_000)
    with Database(bench.directory / "views.svcdb") as database:
        plugins = load_plugins(None)
        initialize(database, plugins)
        register_views(database, plugins)
        with unsynced():
            _fill(database, count)
        readers = [database.view(item.value.name) for item in plugins.registries.views]
        total, worked = 0.0, time.process_time()
        for reader in readers:
            seconds = seconds_of(reader.catch_up)
            total += seconds
            bench.report.limit(f"{reader.name} of {count:,} new files", [seconds], "s")
        bench.report.limit(f"all views of {count:,} new files, one after the other", [total], "s", 60)
        worked = time.process_time() - worked
        bench.report.limit(f"processor time of all views for {count:,} new files", [worked], "s", 60)
        _move_at_once(bench, database, readers, count)


def _move_at_once(bench: Bench, database: Database, readers: list[ViewReader], count: int) -> None:
    """One request for all files, and then each view."""
    tree, copy, moved = ("tree",), ("copy",), ("moved",)
    entry = database.at().get(tree)
    assert entry is not None
    works: dict[str, Callable[[Transaction], object]] = {
        "copied": lambda transaction: transaction.copy(tree, copy),
        "moved": lambda transaction: transaction.move(copy, moved),
        "deleted": lambda transaction: transaction.delete(tree, recursive=True),
        "restored": partial(_restore, path=tree, entry=entry),
    }
    before = _resident()
    for what, work in works.items():
        with database.transaction() as transaction:
            work(transaction)
        slowest = max(seconds_of(reader.catch_up) for reader in readers)
        bench.report.limit(f"slowest view of {count:,} files {what} at once", [slowest * 1000], "ms", 1000)
    growth = (_resident() - before) / _KIBIBYTE
    bench.report.limit(f"memory for that, {count:,} files four times", [growth], "MiB", 20)


def _restore(transaction: Transaction, path: TreePath, entry: Entry) -> None:
    transaction.put_entry(path, entry)


def _fill(database: Database, count: int) -> None:
    for start in range(0, count, _IN_COMMIT):
        with database.transaction() as transaction:
            for number in range(start, min(start + _IN_COMMIT, count)):
                path = ("tree", f"{number // _IN_DIRECTORY:04}", f"{number % _IN_DIRECTORY:04}")
                transaction.put(path, b"%010d" % number, content_type="text/plain")


def _resident() -> float:
    """KiB of this process's memory that no file backs."""
    for line in Path(f"/proc/{os.getpid()}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return float(line.split()[1])
    return 0.0
