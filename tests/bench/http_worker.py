"""The worker class alone: a one-line Falcon application under svc's worker and under gunicorn's own."""

from __future__ import annotations

from load import Load, begin
from measurement import Bench
from servers import OWN_WORKER, STOCK_WORKER, one_line_app

CONNECTIONS = 32
SECONDS = 2.0


def worker(bench: Bench) -> None:
    """A one-line Falcon application, 32 connections: svc's worker class beside the stock one."""
    ours: list[Load] = []
    theirs: list[Load] = []
    with (
        one_line_app(bench.directory, OWN_WORKER) as own,
        one_line_app(bench.directory, STOCK_WORKER) as stock,
    ):
        for _ in range(bench.rounds(3)):
            for server, loads in ((own, ours), (stock, theirs)):
                with begin(server, "/", CONNECTIONS, SECONDS) as loading:
                    loads.append(loading.end())
    work, peer = "worker class: GET 1 KiB, 32 connections", "stock gevent worker"
    rates = [load.rate for load in ours], [load.rate for load in theirs]
    slowest = [load.p99_ms for load in ours], [load.p99_ms for load in theirs]
    bench.report.compare(work, rates[0], "1/s", peer, rates[1], 3.0)
    bench.report.compare(f"{work}, p99", slowest[0], "ms", peer, slowest[1], at_most=True)
