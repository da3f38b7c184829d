"""What a real Prometheus has counted at the end of a mixed load is what the clients of it have counted.

In the middle one worker is killed and the server is reloaded. In CI the load lasts some seconds, with
``tox -e monitoring`` ten minutes.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

from monitoring.counting_clients import Counted, CountingClients, Done
from monitoring.prometheus import Prometheus, scraping
from monitoring.scale import SCALE, SEED, scaled
from monitoring.serving import as_root, serving
from svc_cli.processes.registration import registered_processes
from svc_testing import Server

SECONDS = scaled(15)
SCRAPE_SECONDS = 5 if SCALE > 1 else 1
CLIENTS = 8
PACE = 40.0
WORKERS = 4
COUNTS = "svc_http_request_seconds_count"
SIGN_IN = Done("/auth/token", "POST", "200")
NOT_OF_CLIENTS = "/system/metrics/scrape|/system/health"
"""What Prometheus asks, and a server that begins: whether it answers."""


def test_prometheus_counts_what_clients_count_whatever_is_killed(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "x.svcdb", "--workers", str(WORKERS)) as server,
        scraping(tmp_path / "prometheus", server.url, seconds=SCRAPE_SECONDS) as prometheus,
    ):
        root = as_root(server)
        with CountingClients(server.url, root, clients=CLIENTS, pace=PACE, seed=SEED) as clients:
            time.sleep(SECONDS / 3)
            kill_a_worker(server)
            time.sleep(SECONDS / 3)
            server.process.send_signal(signal.SIGHUP)
            time.sleep(SECONDS / 3)
        assert clients.failures == []
        clients.counted.answered[SIGN_IN] += 1
        prometheus.wait_for_scrapes(2)
        told = told_by(prometheus)
        compare(clients.counted, told)
        assert_bytes_agree(clients.counted, prometheus)
        assert_it_never_went_back(prometheus)


def kill_a_worker(server: Server) -> None:
    processes = registered_processes(Path(f"{server.database_path}.d"))
    workers = [one.pid for one in processes if one.kind == "worker"]
    assert len(workers) == WORKERS
    os.kill(workers[0], signal.SIGKILL)


def told_by(prometheus: Prometheus) -> Counter[Done]:
    told: Counter[Done] = Counter()
    for series in prometheus.query(f"{COUNTS}{{route!~'{NOT_OF_CLIENTS}'}}"):
        labels = series["metric"]
        count = float(series["value"][1])
        assert count.is_integer()
        done = Done(labels.get("route", ""), labels.get("method", ""), labels["status"])
        told[done] += int(count)
    return told


def compare(counted: Counted, told: Counter[Done]) -> None:
    """Equal, but for requests that were cut off: each may be counted once more, with any status."""
    print(f"{SECONDS} s: {counted.answered.total()} answers, {counted.cut.total()} requests cut off")
    print(f"{'counted':>9} {'told':>9}")
    for done in sorted(counted.answered | told):
        print(f"{counted.answered[done]:9} {told[done]:9} {done.method:7} {done.status} {done.route}")
    # One kill and one reload cut off what is under way, and what comes while a connection closes.
    assert counted.cut.total() <= 2 * CLIENTS
    assert len(counted.answered) > 15
    more: Counter[tuple[str, str]] = Counter()
    for done in counted.answered | told:
        difference = told[done] - counted.answered[done]
        assert difference >= -counted.uncertain[done], f"{done}: {-difference} are missing"
        more[done.route, done.method] += max(0, difference)
    assert more <= counted.cut, f"counted too often: {more - counted.cut}"


def assert_bytes_agree(counted: Counted, prometheus: Prometheus) -> None:
    [series] = prometheus.query("svc_http_received_bytes_total")
    sign_in = 200
    received = float(series["value"][1])
    assert counted.received <= received <= counted.received_at_most + sign_in


def assert_it_never_went_back(prometheus: Prometheus) -> None:
    """Rates of what goes back would be wrong: Prometheus takes that for a restart."""
    for name in (COUNTS, "svc_commit_seconds_count", "svc_http_sent_bytes_total"):
        assert [
            series for series in prometheus.query(f"resets({name}[1h])") if series["value"][1] != "0"
        ] == []
