"""What it costs to be watched: to count requests, and to be scraped. In processor time of the worker."""

from __future__ import annotations

import http.client
import statistics
import time
from collections.abc import Callable
from functools import partial

import processes
import wrk
from falcon.testing import create_environ
from measurement import Bench, kibibyte
from report import interleave
from servers import Server, svc

from svc.metrics import _memory
from svc.pipeline import access, application
from svc_testing import load_with_testing_auth, serve_in_process

_SECONDS = 3.0
_CALLS = 5_000
_SCRAPES = 300
_SCRAPED_EVERY_S = 10
_KINDS = (
    "/files/file",
    "/files/none",
    "/files/",
    "/nothing",
    "/system/health",
    "/system/plugins",
    "/system/tasks",
)
_METHODS = ("GET", "HEAD", "PUT", "DELETE", "POST", "PATCH")


def counting(bench: Bench) -> None:
    """What counting adds to a GET, and what a scrape costs, in processor time of the worker."""
    with svc(bench.directory / "counted.svcdb") as server:
        server.put("/files/file", kibibyte(0))
        gets = [_microseconds_a_get(server) for _ in range(bench.rounds(5))]
        bench.report.limit("worker, each GET 1 KiB of 32 connections", gets, "us")
        added = _microseconds_added(bench)
        bench.report.limit("counting, each of these", added, "us")
        share = [one / statistics.median(gets) * 100 for one in added]
        bench.report.limit("counting, share of them", share, "%", 2)
        _ask_for_all_kinds(server)
        costs = [_seconds_a_scrape(server) for _ in range(bench.rounds(5))]
        bench.report.limit("worker, each scrape", [cost * 1000 for cost in costs], "ms")
        share = [cost / _SCRAPED_EVERY_S * 100 for cost in costs]
        bench.report.limit(f"scraped every {_SCRAPED_EVERY_S} s, share of a core", share, "%", 1)


def _microseconds_added(bench: Bench) -> list[float]:
    """The difference that counting makes to calls of the application, in one process, in turns.

    Between two servers other things differ by more than this: where their memory lies, and what else runs.
    """
    environ = create_environ("/files/file")
    plugins = load_with_testing_auth("files")
    with serve_in_process(bench.directory / "calls.svcdb", plugins) as (app, database, _mode):
        with database.transaction() as transaction:
            transaction.put(("file",), kibibyte(0))

        def call() -> int:
            return len(b"".join(app(dict(environ), lambda *_words: None)))

        assert call() == 1024
        before = _counted_in_process()
        call()
        assert _counted_in_process() == before + 1

        def calls(count: Callable[..., None]) -> float:
            application.count_request = count
            begun = time.process_time()
            for _ in range(_CALLS):
                call()
            return (time.process_time() - begun) / _CALLS * 1e6

        counts = application.count_request
        try:
            turns = [partial(calls, counts), partial(calls, lambda *_words: None)]
            counted, uncounted = interleave(bench.rounds(15), *turns)
        finally:
            application.count_request = counts
    # The least of each is what other work on the machine has added least to.
    middle = len(counted) // 2
    halves = ((counted[:middle], uncounted[:middle]), (counted[middle:], uncounted[middle:]))
    return [min(ours) - min(theirs) for ours, theirs in halves]


def _counted_in_process() -> int:
    first, *_ = access.REQUEST_SECONDS._first.values()
    buckets = len(access.REQUEST_SECONDS.bounds) + 1
    return int(sum(_memory.slots[first : first + buckets]))


def _worker_of(server: Server) -> int:
    (worker,) = (pid for pid in processes.children(server.pid) if processes.name_of(pid) != "svc-background")
    return worker


def _microseconds_a_get(server: Server) -> float:
    worker = _worker_of(server)
    before = processes.processor_seconds(worker)
    load = wrk.get(server, "/files/file", 1024, 32, _SECONDS)
    return (processes.processor_seconds(worker) - before) / (load.rate * _SECONDS) * 1e6


def _ask_for_all_kinds(server: Server) -> None:
    """Makes series, as a server has after some days."""
    connection = http.client.HTTPConnection(*server.address)
    for path in _KINDS:
        for method in _METHODS:
            connection.request(method, path, b"" if method == "PUT" else None, dict(server.headers))
            connection.getresponse().read()
    connection.close()


def _seconds_a_scrape(server: Server) -> float:
    worker = _worker_of(server)
    before = processes.processor_seconds(worker)
    connection = http.client.HTTPConnection(*server.address)
    for _ in range(_SCRAPES):
        connection.request("GET", "/system/metrics", headers=dict(server.headers))
        answer = connection.getresponse()
        assert answer.status == 200
        answer.read()
    connection.close()
    return (processes.processor_seconds(worker) - before) / _SCRAPES
