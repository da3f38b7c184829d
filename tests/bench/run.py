"""Runs the measurements that are named, or all, and prints one table of ratios.

Usage: ``python tests/bench/run.py [NAME] ... [--list] [--quick] [--json FILE] [--plot FILE]``
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import background
import backing_up
import beside_load
import clusters
import collection
import counting
import directories
import fan_out
import following
import history_replay
import http_files
import http_worker
import identity
import importing
import kernel
import large_files
import objects
import opening
import overwriting
import portal
import query
import starting
import streaming
import verifying
import versioning
import webhooks
from measurement import Bench
from report import Report

import floods

MEASUREMENTS: dict[str, Callable[[Bench], None]] = {
    "get": http_files.get,
    "put": http_files.put,
    "put-workers": http_files.put_by_workers,
    "background": background.puts,
    "rest": background.memory,
    "identity": identity.identity,
    "counting": counting.counting,
    "worker": http_worker.worker,
    "kernel-put": kernel.durable_puts,
    "kernel-get": kernel.gets_by_path,
    "import": importing.from_memory,
    "load": importing.from_disk,
    "large": large_files.speed,
    "overwrite": overwriting.overwrites,
    "memory": large_files.memory,
    "sizes": large_files.sizes,
    "update": directories.updates,
    "diff": directories.differences,
    "views": following.views,
    "open": opening.opening,
    "start": starting.starts,
    "streams": streaming.streams,
    "fan-out": fan_out.fan_out,
    "webhooks": webhooks.deliveries,
    "versions": versioning.versions,
    "history": versioning.history,
    "backup": backing_up.backups,
    "verify": verifying.verifying,
    "collection": collection.collections,
    "query": query.in_process,
    "query-http": query.over_http,
    "query-writes": query.between_writes,
    "p99": beside_load.slowest_gets,
    "floods": floods.slowest_gets,
    "portal": portal.pages,
    "seaweed": objects.small,
    "seaweed-large": objects.large,
}
"""Every measurement by its name; the first line of its docstring says what it measures."""

ONLY_NAMED: dict[str, Callable[[Bench], None]] = {
    "replay": history_replay.measure,
    "cluster": clusters.cluster,
    "cluster-changes": clusters.changes,
    "cluster-restore": clusters.restores,
    "cluster-writes": clusters.writes,
    "cluster-copy": clusters.copies,
    "cluster-delay": clusters.delays,
}
"""More of them, which download what they need or take long: a run has them only if they are named."""


def main() -> None:
    """Runs, prints, saves, draws."""
    options = _options()
    if options.list:
        for name, measurement in (MEASUREMENTS | ONLY_NAMED).items():
            print(f"{name:14} {(measurement.__doc__ or '').splitlines()[0]}")
        return
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGTERM, _stop)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="svc-bench-", dir=options.directory) as directory:
        names = options.names or list(MEASUREMENTS)
        _measure(report, Path(directory).resolve(), names, options.quick, options.documents)
        _publish(report, options)
    sys.exit(1 if report.broken else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="what to measure; all that need no network without one"
    )
    parser.add_argument("--list", action="store_true", help="say what there is to measure")
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds")
    parser.add_argument(
        "--documents", type=int, metavar="N", help="documents that are queried; 100,000 without it"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write rows and curves to this file too")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the curves into this PNG file")
    parser.add_argument(
        "--directory", type=Path, default=Path(), help="on the disk to measure; what is written is removed"
    )
    options = parser.parse_args()
    for name in options.names:
        if name not in MEASUREMENTS | ONLY_NAMED:
            known = ", ".join(MEASUREMENTS | ONLY_NAMED)
            parser.error(f"there is no measurement {name!r}; there are: {known}")
    return options


def _measure(
    report: Report, directory: Path, names: Sequence[str], quick: bool, documents: int | None
) -> None:
    shared = directory / "shared"
    shared.mkdir()
    materials: dict[str, object] = {}
    for name in names:
        start = time.monotonic()
        report.name = name
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=directory, ignore_cleanup_errors=True) as own:
            try:
                bench = Bench(report, Path(own), shared, quick, documents, materials)
                (MEASUREMENTS | ONLY_NAMED)[name](bench)
            except Exception as error:
                # The others are worth having.
                report.broken[name] = f"{type(error).__name__}: {error}"
                traceback.print_exc()
        print(f"-- {name}: {time.monotonic() - start:.0f} s", flush=True)


def _publish(report: Report, options: argparse.Namespace) -> None:
    report.print_table()
    if options.json is not None:
        report.save(options.json)
    if options.plot is not None and report.curves:
        from plot import draw

        draw(report.curves, options.plot)
    elif options.plot is not None:
        print("no picture: only get, put, sizes and update draw curves")


def _stop(number: int, _: object) -> None:
    """Ends the run so that every server and directory is cleared away; further signals do not disturb it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
