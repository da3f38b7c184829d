"""The worker class alone: a one-line Falcon application under svc's worker and under gunicorn's own."""

from __future__ import annotations

import contextlib
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from load import Load, measure
from report import Report, Row

CONNECTIONS = 32
SECONDS = 2.0
ROUNDS = 5
_REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: load\r\nAccept: */*\r\n\r\n"
_APPLICATION = """\
import falcon

BODY = b"x" * 1024


class Resource:
    def on_get(self, req, resp):
        resp.data = BODY


app = falcon.App()
app.add_route("/", Resource())
"""


def run(report: Report, directory: Path) -> None:
    """Measures GET of 1 KiB at 32 connections: requests a second, and the 99th percentile of the latency."""
    (directory / "one_line_app.py").write_text(_APPLICATION)
    ours, stock = [], []
    with (
        _serving(directory, "svc.server.http1.Worker") as own_address,
        _serving(directory, "gevent") as stock_address,
    ):
        for _ in range(ROUNDS):
            ours.append(measure(own_address, _REQUEST, CONNECTIONS, SECONDS))
            stock.append(measure(stock_address, _REQUEST, CONNECTIONS, SECONDS))
    mine, theirs = _median(ours, "rate"), _median(stock, "rate")
    peer = "stock gevent worker"
    report.add(Row("worker: GET 1 KiB, 32 connections", mine, "1/s", peer, theirs, mine / theirs, 3.0))
    mine, theirs = _median(ours, "p99_ms"), _median(stock, "p99_ms")
    report.add(Row("worker: p99 of the same", mine, "ms", peer, theirs, mine / theirs, 0.2, at_most=True))


@contextlib.contextmanager
def _serving(directory: Path, worker: str) -> Iterator[tuple[str, int]]:
    log = directory / f"{worker}.log"
    with log.open("w") as stream:
        command = [sys.executable, "-m", "gunicorn", "--no-control-socket", "-k", worker]
        process = subprocess.Popen(
            [*command, "-b", "127.0.0.1:0", "--keep-alive", "75", "one_line_app:app"],
            cwd=directory,
            stdout=stream,
            stderr=stream,
        )
    try:
        deadline = time.monotonic() + 20
        while not (match := re.search(r"Listening at: http://127\.0\.0\.1:(\d+)", log.read_text())):
            if time.monotonic() > deadline:
                raise RuntimeError(log.read_text())
            time.sleep(0.05)
        yield "127.0.0.1", int(match[1])
    finally:
        process.terminate()
        process.wait(40)


def _median(loads: list[Load], figure: str) -> float:
    return statistics.median(getattr(load, figure) for load in loads)
