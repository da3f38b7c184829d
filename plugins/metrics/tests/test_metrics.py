"""What Prometheus reads: whole, in its form, equal to what clients did, whatever was killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import TestClient
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
from prometheus_client.parser import text_string_to_metric_families as parse

from svc.plugins import enable
from svc_cli.processes.registration import registered_processes
from svc_testing import Server, load_with_testing_auth, run_svc, serve_in_process, start_server, used_by

PLUGINS = ("files", "users", "events", "tasks", "metrics")


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def requests_of(found: dict[Any, float], route: str, method: str, status: str) -> float:
    labels = (("method", method), ("route", route), ("status", status))
    return found.get(("svc_http_request_seconds_count", labels), 0.0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("metrics") / "x.svcdb"
    with start_server(path, "--workers", "2", "--background", "true", plugins=PLUGINS) as running:
        yield running


def read(server: Server) -> str:
    answer = server.get("/system/metrics")
    assert answer.status == 200
    return answer.body.decode()


def test_its_counts_equal_what_clients_did(server: Server) -> None:
    before = samples(read(server))

    def work(number: int) -> None:
        for part in range(25):
            path = f"/files/{number}-{part}.txt"
            assert server.request("PUT", path, body=b"x" * 100).status == 201
            assert server.get(path).status == 200
            assert server.get("/files/none").status == 404

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = samples(read(server))
    route = "/files/{path:path}"
    for method, status in (("PUT", "201"), ("GET", "200"), ("GET", "404")):
        counted = requests_of(after, route, method, status) - requests_of(before, route, method, status)
        assert counted == 200, (method, status)
    received = ("svc_http_received_bytes_total", ())
    assert after[received] - before.get(received, 0.0) == 200 * 100
    assert after["svc_files", ()] == 200
    transactions = ("svc_commit_transactions_sum", ())
    assert after[transactions] - before.get(transactions, 0.0) >= 200


def test_a_worker_that_is_killed_takes_nothing_with_it(server: Server) -> None:
    before = requests_of(samples(read(server)), "/system/health", "GET", "200")
    for _ in range(20):
        assert server.get("/system/health").status == 200
    processes = registered_processes(Path(f"{server.database_path}.d"))
    worker = next(one.pid for one in processes if one.kind == "worker")
    os.kill(worker, signal.SIGKILL)
    server.wait_until_ready()
    after = requests_of(samples(read(server)), "/system/health", "GET", "200")
    assert after - before >= 20


def test_promtool_finds_nothing_to_say(server: Server) -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None, "promtool of Debian's prometheus is missing: python tests/system_packages.py"
    done = subprocess.run([promtool, "check", "metrics"], input=read(server), capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_open_metrics_come_where_they_are_accepted(server: Server) -> None:
    answer = server.request("GET", "/system/metrics", headers={"Accept": "application/openmetrics-text"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    families = {family.name: family for family in parse_open(answer.body.decode())}
    assert families["svc_http_request_seconds"].type == "histogram"
    assert families["svc_http_sent_bytes"].type == "counter"


def test_urls_make_no_series(server: Server) -> None:
    for number in range(50):
        server.get(f"/nothing/{number}")
        server.request("BREW", f"/files/{number}")
    text = read(server)
    assert "/nothing" not in text
    assert "BREW" not in text


def test_plugins_add_gauges(server: Server) -> None:
    found = samples(read(server))
    assert ("svc_tasks", (("status", "pending"),)) in found
    deadline = time.monotonic() + 30  # A worker that another test has killed is being replaced.
    while found["svc_processes", ()] < 3:
        assert time.monotonic() < deadline
        found = samples(read(server))


def test_root_alone_reads_them_and_who_has_the_token(tmp_path: Path) -> None:
    plugins = load_with_testing_auth(*used_by("metrics"))
    with serve_in_process(tmp_path / "x.svcdb", plugins) as (app, database, mode):
        client = TestClient(app)
        assert client.simulate_get("/system/metrics").status_code == 200
        mode.identity = None
        assert client.simulate_get("/system/metrics").status_code == 401
        scrape = "/system/metrics/scrape"
        assert client.simulate_get(scrape, headers={"Authorization": "Bearer "}).status_code == 404
        enable(database, plugins, "metrics", {"scrape_token": "a token"})
        for given, status in (("Bearer a token", 200), ("Bearer b", 401), ("a token", 401), ("", 401)):
            answer = client.simulate_get(scrape, headers={"Authorization": given})
            assert answer.status_code == status, given
            assert "a token" not in answer.text


def test_a_source_that_raises_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from svc_tasks.gauges import TaskGauges

    def broken(self: Any, context: Any) -> Any:
        raise ValueError("broken")

    monkeypatch.setattr(TaskGauges, "gauges", broken)
    plugins = load_with_testing_auth(*used_by("metrics", "tasks", "events"))
    with serve_in_process(tmp_path / "x.svcdb", plugins) as (app, _database, _mode):
        text = TestClient(app).simulate_get("/system/metrics").text
    assert re.search(r"^svc_files 0\.0$", text, re.MULTILINE)
    assert "svc_tasks{" not in text


def test_the_token_is_never_shown(tmp_path: Path) -> None:
    place = str(tmp_path / "x.svcdb")
    run_svc("plugins", "enable", "metrics", "-D", place, "--set", "scrape_token=verysecret")
    for words in (("plugins", "config", "metrics"), ("plugins", "info", "metrics"), ("plugins", "list")):
        done = run_svc(*words, "-D", place, "--json")
        assert "verysecret" not in done.stdout + done.stderr
