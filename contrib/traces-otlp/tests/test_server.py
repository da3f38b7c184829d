"""Spans of a real server with two workers at a real collector, also one that is down, fails or hangs."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from svc.plugin import counting_processes

from .conftest import (  # noqa: TID252
    Collector,
    collecting,
    counted,
    tracing,
    unused_endpoint,
    wait_until,
)

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
SECRET = "a-very-secret-word"


def test_both_workers_send_what_they_answered(tmp_path: Path, collector: Collector) -> None:
    with tracing(tmp_path / "x.svcdb", collector.url, "--workers", "2", headers="X-Scope=mine") as server:
        ids = []
        for number in range(60):
            answer = server.request("PUT", f"/files/{number}.txt", body=b"x" * 10)
            assert answer.status == 201
            ids.append(answer.headers["x-request-id"])
        puts = collector.wait_for(60)
    assert {span.name for span in puts} == {"PUT /files/{path:path}"}
    assert sorted(span.trace_id for span in puts) == sorted(ids)
    assert len({span.resource["process.pid"] for span in puts}) == 2
    assert {span.resource["service.name"] for span in puts} == {"svc"}
    assert {span.attributes["http.response.status_code"] for span in puts} == {201}
    assert {headers["x-scope"] for headers in collector.headers} == {"mine"}
    by_id = {span.span_id: span for span in collector.spans}
    commits = [span for span in by_id.values() if span.name == "commit"]
    assert len(commits) == 60
    for name in ("commit.lock", "log.sync"):
        steps = [span for span in by_id.values() if span.name == name]
        assert len(steps) == 60
        for step in steps:
            commit = by_id[step.parent]
            request = by_id[commit.parent]
            assert request.start <= commit.start <= step.start <= step.end <= commit.end <= request.end


def test_a_trace_of_the_caller_goes_on(tmp_path: Path, collector: Collector) -> None:
    with tracing(tmp_path / "x.svcdb", collector.url, sample_ratio=0) as server:
        for flags in ("00", "01"):
            parent = {"traceparent": f"00-{TRACE_ID}-b7ad6b71692033{flags}-{flags}"}
            assert server.request("GET", "/files/none", headers=parent).status == 404
        assert server.get("/files/none").status == 404
        collector.wait_for(1)
    [span] = collector.spans
    assert (span.trace_id, span.parent) == (TRACE_ID, "b7ad6b7169203301")
    assert span.attributes["http.response.status_code"] == 404


def test_no_secret_and_no_name_of_a_file_is_sent(tmp_path: Path, collector: Collector) -> None:
    with tracing(tmp_path / "x.svcdb", collector.url, compression="gzip") as server:
        headers = {"Authorization": f"Bearer {SECRET}", "Cookie": f"a={SECRET}"}
        server.request("PUT", f"/files/{SECRET}.txt?token={SECRET}", body=SECRET.encode(), headers=headers)
        server.request("GET", f"/nothing/{SECRET}", headers=headers)
        collector.wait_for(2)
    assert collector.headers[0]["content-encoding"] == "gzip"
    assert SECRET.encode() not in b"".join(collector.raw)


def test_a_collector_that_comes_late_gets_what_comes_then(tmp_path: Path) -> None:
    endpoint = unused_endpoint()
    with tracing(tmp_path / "x.svcdb", endpoint, timeout_seconds=0.5) as server:
        assert server.get("/files/none").status == 404
        wait_until(lambda: counted(server, "svc_traces_dropped", "collector") >= 1)
        wait_until(lambda: "Traces are dropped" in server.errors)
        with collecting(urlsplit(endpoint).port or 0) as collector:
            assert server.get("/files/none").status == 404
            collector.wait_for(1)
            wait_until(lambda: "Traces are sent again" in server.errors)
        assert counted(server, "svc_traces_sent") >= 1


def test_one_that_refuses_is_counted_and_said_once(tmp_path: Path, collector: Collector) -> None:
    collector.answer = lambda: 400
    with tracing(tmp_path / "x.svcdb", collector.url) as server:
        for number in range(1, 4):
            assert server.get("/files/none").status == 404
            wait_until(lambda number=number: counted(server, "svc_traces_dropped", "collector") >= number)
        wait_until(lambda: "Traces are dropped" in server.errors)
        assert server.errors.count("Traces are dropped") == 1


@pytest.mark.parametrize("worker_class", ["http1", "gthread"])
def test_one_that_hangs_holds_up_nothing_and_the_queue_is_bounded(
    tmp_path: Path, collector: Collector, worker_class: str
) -> None:
    hangs, released = threading.Event(), threading.Event()

    def hang() -> int:
        hangs.set()
        released.wait()
        return 503

    collector.answer = hang
    settings = {"queue_size": 20, "timeout_seconds": 600}
    path = tmp_path / "x.svcdb"
    try:
        with tracing(path, collector.url, "--worker-class", worker_class, **settings) as server:
            assert server.get("/files/none").status == 404
            assert hangs.wait(60)
            for number in range(100):
                assert server.request("PUT", f"/files/{number}", body=b"x").status == 201
            # Beside these, the server has asked itself whether it answers, alone or with the first of them.
            full = counted(server, "svc_traces_dropped", "queue")
            assert full in (80, 81)
            # Far less than the collector may take: this raises where the end waits for it.
            assert server.stop() == 0
            left = counted(server, "svc_traces_dropped", "stop")
            assert full + left == 102
            assert f"{left:.0f} traced requests were not sent before the end" in server.errors
    finally:
        released.set()


def test_what_waits_is_sent_at_the_end(tmp_path: Path, collector: Collector) -> None:
    with tracing(tmp_path / "x.svcdb", collector.url, interval_seconds=600) as server:
        for number in range(20):
            assert server.request("PUT", f"/files/{number}", body=b"x").status == 201
        assert not collector.spans
        assert server.stop() == 0
    assert len([span for span in collector.spans if span.name == "PUT /files/{path:path}"]) == 20


def test_as_many_as_fit_a_request_are_sent_at_once(tmp_path: Path, collector: Collector) -> None:
    with tracing(tmp_path / "x.svcdb", collector.url, interval_seconds=600) as server:
        for _ in range(300):
            assert server.get("/files/none").status == 404
        collector.wait_for(256)


def test_a_reload_and_a_kill_are_survived(tmp_path: Path, collector: Collector) -> None:
    with tracing(tmp_path / "x.svcdb", collector.url, interval_seconds=0.05) as server:
        assert server.get("/files/none").status == 404
        collector.wait_for(1)
        directory = Path(f"{server.database_path}.d")
        [before] = counting_processes(directory)
        os.kill(before, signal.SIGKILL)
        assert server.get("/files/none").status == 404
        collector.wait_for(2)
        [second] = counting_processes(directory)
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: counting_processes(directory) not in ([], [second]))
        wait_until(lambda: second not in counting_processes(directory))
        assert server.get("/files/none").status == 404
        spans = collector.wait_for(3)
    assert len({span.resource["process.pid"] for span in spans}) == 3
