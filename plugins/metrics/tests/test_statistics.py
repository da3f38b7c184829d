"""What ``/system/stats``, the event and the commands say equals what there is and what was done."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
from svc_events.following import events_of_server
from svc_metrics.counted import distribution_of
from svc_metrics.rates import Sample, Samples, add_sample, rates_of

from svc.metrics import Declared
from svc.plugin import Series
from svc_client import Client
from svc_testing import Server, run_svc, start_server

JSON = {"Content-Type": "application/json"}
PLUGINS = ("files", "versions", "users", "client", "events", "events.sse", "tasks", "query", "metrics")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("statistics") / "x.svcdb"
    run_svc("plugins", "enable", "metrics", "-D", str(path), "--set", "event_seconds=1")
    with start_server(path, "--workers", "2", "--background", "true", plugins=PLUGINS) as running:
        yield running


def statistics(server: Server) -> dict[str, Any]:
    answer = server.get("/system/stats")
    assert answer.status == 200
    return json.loads(answer.body)


def wait_for(server: Server, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while not is_so(found := statistics(server)):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    return found


def test_statistics_say_what_there_is(server: Server) -> None:
    before = wait_for(server, lambda found: found["memory"]["process"]["processes"] == 3)
    for number in range(20):
        assert server.request("PUT", f"/files/a/{number}.txt", body=b"the same" * 100).status == 201
        assert server.get(f"/files/a/{number}.txt").status == 200
    assert server.request("POST", "/versions/snapshots", body=b'{"name": "one"}', headers=JSON).status == 201
    after = statistics(server)
    grown = {name: after["counts"][name] - count for name, count in before["counts"].items()}
    assert (grown["files"], grown["directories"], grown["snapshots"], grown["forks"]) == (20, 1, 1, 0)
    assert after["sizes"]["logical_data"] - before["sizes"]["logical_data"] == 20 * 800
    assert after["sizes"]["dedup_savings"] > 0
    assert after["health"]["dedup_hit_rate"] > 0.5
    assert after["health"]["write_buffer_depth"] == 0
    assert after["sizes"]["disk_total"] >= after["sizes"]["kv_file"] > 0
    process = after["memory"]["process"]
    assert process["processes"] == 3
    assert process["peak_rss_bytes"] >= process["rss_bytes"] > 0
    route = ("/files/{path:path}", "PUT")
    (puts,) = [one for one in after["latency"]["requests"] if (one["route"], one["method"]) == route]
    assert puts["spread"]["count"] >= 20
    assert 0 < puts["spread"]["p50_ms"] <= puts["spread"]["p99_ms"]
    assert after["latency"]["commit"]["count"] > 0
    assert after["identity"]["version"] == server.get("/files/").headers["x-svc-version"]
    assert {"files", "metrics"} <= {one["id"] for one in after["plugins"]}
    assert after["sync"] == {}


def test_rates_come_and_rise(server: Server) -> None:
    def has_rates(found: dict[str, Any]) -> bool:
        for number in range(5):
            server.request("PUT", f"/files/rate-{number}.txt", body=b"x" * 1000)
        rates = found["throughput"]
        return bool(rates["writes_per_sec"]["1m"]) and bool(rates["bytes_written_per_sec"]["15m"])

    found = wait_for(server, has_rates)["throughput"]
    assert found["writes_per_sec"]["peak_1m"] >= found["writes_per_sec"]["1m"] > 0
    assert "peak_1m" not in found["bytes_read_per_sec"]


def test_the_event_comes_as_often_as_the_settings_say(server: Server) -> None:
    with Client(server.url) as client:
        events = list(islice(events_of_server(client, ("metrics",), since="0"), 2))
    for event in events:
        assert set(event.payload) == {"counts", "sizes", "throughput", "health", "memory"}
        assert event.payload["counts"]["event_streams"] >= 1
    assert events[1].timestamp // 1000 > events[0].timestamp // 1000


def test_the_commands_show_them(server: Server) -> None:
    for place in (("--url", server.url), ("-D", str(server.database_path))):
        shown = run_svc("stats", *place)
        assert (shown.exit_code, "/files/{path:path}" in shown.stdout) == (0, True), shown.stderr
        found = json.loads(run_svc("stats", "--json", *place).stdout)
        assert found["counts"]["files"] == statistics(server)["counts"]["files"]
        top = run_svc("top", "--count", "2", "--interval", "0.2", *place)
        assert (top.exit_code, top.stdout.count("LATENCY")) == (0, 2)


def sample(at: float, writes: float) -> Sample:
    return Sample(at, writes, writes, writes * 10, 0)


def test_rates_are_those_of_their_windows() -> None:
    samples = Samples()
    for step in range(200):
        writes = step * 5.0 if step < 150 else 750 + (step - 150) * 50.0
        samples = add_sample(samples, sample(1000 + step * 5, writes))
    rates = rates_of(samples)
    assert rates["writes_per_sec"]["1m"] == 10.0
    assert 1.0 < (rates["writes_per_sec"]["5m"] or 0) < 10.0
    assert (rates["writes_per_sec"]["15m"] or 0) < (rates["writes_per_sec"]["5m"] or 0)
    assert rates["writes_per_sec"]["peak_1m"] == 10.0
    assert rates["bytes_written_per_sec"]["1m"] == 100.0
    assert len(samples.samples) <= 187


@pytest.mark.parametrize(
    "new", [sample(1300, 100), sample(1055, 5), sample(900, 100)], ids=["pause", "restart", "clock set back"]
)
def test_what_was_before_a_pause_counts_no_more(new: Sample) -> None:
    samples = Samples()
    for step in range(11):
        samples = add_sample(samples, sample(1000 + step * 5, step * 10.0))
    assert rates_of(samples)["reads_per_sec"]["1m"] == 2.0
    assert rates_of(add_sample(samples, new))["reads_per_sec"]["1m"] is None


def test_quantiles_are_as_exact_as_the_buckets() -> None:
    declared = Declared("t", "T.", (0.1, 0.2, 0.4), ())
    found = distribution_of([Series(declared, (50.0, 0.0, 50.0, 0.0, 20.0))])
    assert (found.count, found.mean_ms, found.p50_ms, found.p99_ms) == (100, 200.0, 100.0, 396.0)
    assert distribution_of([Series(declared, (0.0, 0.0, 0.0, 9.0, 90.0))]).p99_ms == 400.0
    assert distribution_of([]).count == 0
