"""Small files over HTTP, through the whole of svc: gets and durable puts by number of clients."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial

import wrk
from kernel import raw_appends_a_second
from load import Load
from measurement import Bench, kibibyte
from report import Panel, interleave
from servers import STOCK_WORKER, Server, nginx, one_line_app, sqlite_app, svc

SECONDS = 2.0
_CLIENTS = (1, 4, 16, 64)


def get(bench: Bench) -> None:
    """GET of a 1 KiB file with a token, 32 connections, beside nginx and a stock gevent worker."""
    root = bench.directory / "static"
    root.mkdir()
    (root / "file").write_bytes(kibibyte(0))
    with (
        svc(bench.directory / "get.svcdb") as own,
        nginx(bench.directory, root) as static,
        one_line_app(bench.directory, STOCK_WORKER) as stock,
    ):
        own.put("/files/file", kibibyte(0))
        targets = ((own, "/files/file"), (static, "/file"), (stock, "/"))

        def load_of(target: tuple[Server, str], clients: int, seconds: float = 1.0) -> Load:
            return wrk.get(*target, 1024, clients, seconds)

        def rate_of(target: tuple[Server, str], clients: int) -> float:
            return load_of(target, clients).rate

        ours, files, lines = interleave(
            bench.rounds(3), *(partial(load_of, target, 32, SECONDS) for target in targets)
        )
        work = "GET 1 KiB file, 32 connections"
        rates = [[load.rate for load in loads] for loads in (ours, files, lines)]
        bench.report.compare(work, rates[0], "1/s", "nginx static", rates[1], 0.25)
        bench.report.compare(work, rates[0], "1/s", "stock gevent, one-line Falcon app", rates[2], 3.0)
        for server, loads, limit in (("", ours, 2.5), (" of nginx", files, None)):
            spread = [load.p99_ms / load.p50_ms for load in loads]
            bench.report.limit(f"{work}{server}, p99 / p50", spread, "times", limit)
        labels = ("svc", "nginx static", "stock gevent, one line")
        _curves(
            bench,
            "GET of 1 KiB",
            {label: partial(rate_of, target) for label, target in zip(labels, targets, strict=True)},
        )


def put(bench: Bench) -> None:
    """Durable PUT of 1 KiB, 32 and 1 connections, beside append + fdatasync and SQLite."""
    runs = iter(range(10_000))
    with svc(bench.directory / "put.svcdb") as own, sqlite_app(bench.directory) as sqlite:

        def svc_rate(clients: int, seconds: float = SECONDS) -> float:
            return wrk.put(own, "/files/new/", clients, seconds, f"r{next(runs)}").rate

        def sqlite_rate(clients: int, seconds: float = SECONDS) -> float:
            return wrk.put(sqlite, "/files/new/", clients, seconds, f"r{next(runs)}").rate

        for clients, of_raw, of_sqlite in ((32, 0.35, 1.0), (1, 0.15, 0.5)):
            ours, tables, raws = interleave(
                bench.rounds(3),
                partial(svc_rate, clients),
                partial(sqlite_rate, clients),
                lambda: raw_appends_a_second(bench.directory / "raw"),
            )
            work = f"PUT 1 KiB, durable, {clients} connection{'s' if clients > 1 else ''}"
            bench.report.compare(work, ours, "1/s", "append + fdatasync, 1 thread", raws, of_raw)
            bench.report.compare(work, ours, "1/s", "SQLite WAL FULL, same worker class", tables, of_sqlite)
        _curves(
            bench,
            "durable PUT of 1 KiB",
            {
                "svc": lambda clients: svc_rate(clients, 1.0),
                "SQLite WAL FULL, same worker": lambda clients: sqlite_rate(clients, 1.0),
                "append + fdatasync, 1 thread": lambda _: raw_appends_a_second(bench.directory / "raw", 0.5),
            },
        )


def put_by_workers(bench: Bench) -> None:
    """Durable PUT of 1 KiB, 32 connections, by two and four workers beside one, each with its database."""
    runs = iter(range(10_000))
    with contextlib.ExitStack() as stack:
        servers = {
            workers: stack.enter_context(
                svc(bench.directory / f"workers-{workers}.svcdb", "--workers", str(workers))
            )
            for workers in (1, 2, 4)
        }

        def rate_of(workers: int) -> float:
            return wrk.put(servers[workers], "/files/new/", 32, SECONDS, f"r{next(runs)}").rate

        one, two, four = interleave(bench.rounds(5), *(partial(rate_of, workers) for workers in servers))
        bench.report.compare("PUT 1 KiB, 32 connections, 2 workers", two, "1/s", "1 worker", one, 1.25)
        bench.report.compare("PUT 1 KiB, 32 connections, 4 workers", four, "1/s", "1 worker", one, 1.0)


def _curves(bench: Bench, title: str, measures: Mapping[str, Callable[[int], float]]) -> None:
    """Draws requests a second against the number of clients; each point is measured twice."""
    panel = Panel(title, "clients", "requests a second")
    points: dict[str, dict[float, list[float]]] = {label: {} for label in measures}
    for _ in range(bench.rounds(2)):
        for clients in bench.choose(_CLIENTS, (1, 8, 64)):
            for label, measure in measures.items():
                points[label].setdefault(clients, []).append(measure(clients))
    for label, line in points.items():
        bench.report.curve(panel, label, line)
