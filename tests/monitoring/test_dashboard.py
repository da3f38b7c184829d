"""The dashboard: a real Prometheus that scrapes a real server answers each query of each panel."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from monitoring.prometheus import CONTRIB, TOKEN, Prometheus, scraping
from monitoring.serving import as_root, root_key_of, serving
from svc_blackbox.client import Client, files
from svc_testing import Server, free_port

DASHBOARD = json.loads((CONTRIB / "dashboards" / "svc.json").read_text())
PAGE = (CONTRIB.parents[1] / "docs" / "plugins" / "metrics.md").read_text().partition("## What there is")[2]
PAGE = PAGE.partition("## Settings")[0]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
CHOSEN = {"$__rate_interval": "1m", "$job": "svc", "$instance": ".*", "$route": ".*"}
INDEXES = b'{"glob": "**", "indexes": [{"name": "year", "type": "exact"}]}'
SAID_BY_BACKGROUND = (
    "svc_sync_peer_lag_seconds",
    "svc_sync_peer_clock_offset_seconds",
    "svc_sync_peer_last_sync_seconds",
    "svc_sync_peer_sent_bytes",
    "svc_sync_peer_received_bytes",
    "svc_sink_commits_behind",
    "svc_view_commits_behind",
    "svc_sink_delivered_events_total",
    "svc_sink_failed_deliveries_total",
    "svc_parsed_files_total{result='failed'}",
)
LABEL_VALUES = re.compile(r"label_values\((.*), (\w+)\)")
METRIC = re.compile(r"\bsvc_\w+")
LABEL = re.compile(r"{{(\w+)}}")
OF_MACHINES = {"SvcSyncSlow", "SvcCommitLockHeld", "SvcDiskLow", "SvcDiskFullSoon"}
"""Alerts that a slow or full machine may raise while these tests run there."""
WEBHOOKS = (
    *("--plugin-option", "events.webhook.allow_private=true"),
    *("--plugin-option", "events.webhook.allow_any_port=true"),
)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(503 if self.path == "/refused" else 204)
        self.end_headers()

    def log_message(self, *_words: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("watched") / "x.svcdb"
    with serving(path, "--workers", "2", *WEBHOOKS) as running:
        yield running


@pytest.fixture(scope="module")
def peer(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Another node of the server's cluster, which the server pulls from."""
    port = str(free_port())
    own = ("--port", port, "--host", "127.0.0.1", "--cluster-address", f"http://127.0.0.1:{port}")
    join = ("--join", server.url, "--join-token", root_key_of(server))
    with serving(tmp_path_factory.mktemp("peer") / "x.svcdb", *own, *join) as running:
        yield running


@pytest.fixture(scope="module")
def receiver() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as running:
        running.daemon_threads = True
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/"
        running.shutdown()


@pytest.fixture(scope="module")
def prometheus(
    server: Server, peer: Server, receiver: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """One that has scraped while the server was busy."""
    assert peer.url
    with scraping(tmp_path_factory.mktemp("prometheus") / "home", server.url) as running:
        root = as_root(server)
        with Client(server.url) as client:
            hook = client.post("/system/webhooks", {"id": "one", "url": receiver}, root)
            assert hook.status == 201, hook.body
            refusing = client.post("/system/webhooks", {"id": "two", "url": f"{receiver}refused"}, root)
            assert refusing.status == 201, refusing.body
            assert client.post("/system/tasks/gc", {}, root).status == 202
            nightly = {"id": "nightly", "task_type": "gc", "schedule": "30 3 * * *"}
            assert client.post("/system/cron", nightly, root).status == 201
            indexes = client.request("PUT", files("/books/.svc-config/indexes.json"), INDEXES, root)
            assert indexes.status == 201, indexes.body
            user = client.post("/system/users", {"username": "ann"}, root).json()["user_id"]
            key = client.post("/auth/keys", {"user_id": user, "label": "ann"}, root).json()["key"]
            token = client.post("/auth/token", {"api_key": key}).json()["token"]
            ann = {"Authorization": f"Bearer {token}"}
            assert client.get(files("/books/"), ann).status in (403, 404)
        for _ in range(3):
            work(server, root)
            running.wait_for_scrapes(1)
        wait_until_all_is_told(running)
        yield running


@pytest.fixture(scope="module")
def samples(server: Server, prometheus: Prometheus) -> dict[str, str]:
    """Each sample that the server has for Prometheus, with the name of its metric."""
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    text = server.request("GET", "/system/metrics/scrape", headers=bearer).body.decode()
    families = text_string_to_metric_families(text)
    return {sample.name: family.name for family in families for sample in family.samples}


def work(server: Server, root: dict[str, str]) -> None:
    """Everything that is counted, once more."""
    with Client(server.url) as client:
        for number in range(5):
            path = files(f"/{time.monotonic_ns()}-{number}")
            assert client.request("PUT", path, b"x" * 1000, root).status == 201
            assert client.get(path, root).status == 200
        for content in (b'{"year": 1984}', b"{"):
            path = files(f"/books/{time.monotonic_ns()}.json")
            assert client.request("PUT", path, content, root).status == 201
        assert client.get(files("/absent"), root).status == 404
        assert client.get("/no/such/route", root).status == 404
        assert client.get(files("/closed")).status == 401
        assert client.post("/auth/token", {"api_key": root_key_of(server)[:-8] + "00000000"}).status == 401
        stream = client.get("/system/events", root, last_event_id=0, follow="false")
        assert stream.status == 200
        assert b"entries_created" in stream.body


def wait_until_all_is_told(prometheus: Prometheus) -> None:
    """What the background process says of itself comes a moment later than what workers count."""
    deadline = time.monotonic() + 60
    while not all(map(prometheus.query, SAID_BY_BACKGROUND)):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    prometheus.wait_for_scrapes(1)


def chosen(text: str) -> str:
    """A text with a value for each variable, as Grafana fills them in."""
    for name, value in CHOSEN.items():
        text = text.replace(name, value)
    assert "$" not in text, text
    return text


def queries() -> list[Any]:
    return [
        pytest.param(panel, target, id=f"{panel['id']}-{panel['title']}-{target['refId']}".replace(" ", "_"))
        for panel in PANELS
        for target in panel["targets"]
    ]


@pytest.mark.parametrize(("panel", "target"), queries())
def test_a_panel_shows_something(
    prometheus: Prometheus, panel: dict[str, Any], target: dict[str, Any]
) -> None:
    found = prometheus.query(chosen(target["expr"]))
    assert found, f"no series: {target['expr']}"
    assert any(math.isfinite(float(series["value"][1])) for series in found), found
    for label in LABEL.findall(target["legendFormat"]):
        # What has an empty value is left out: a route that there is not.
        assert any(label in series["metric"] for series in found), (label, found)


@pytest.mark.parametrize("name", [name for name, one in VARIABLES.items() if one["type"] == "query"])
def test_a_variable_has_values(prometheus: Prometheus, name: str) -> None:
    found = LABEL_VALUES.fullmatch(VARIABLES[name]["query"]["query"])
    assert found
    assert prometheus.label_values(found[2], chosen(found[1]))


def test_all_that_there_is_stands_on_a_panel_and_nothing_else(samples: dict[str, str]) -> None:
    shown = {
        name for panel in PANELS for target in panel["targets"] for name in METRIC.findall(target["expr"])
    }
    assert shown <= samples.keys(), f"panels show what svc does not have: {sorted(shown - samples.keys())}"
    assert set(METRIC.findall(PAGE)) <= samples.keys() | set(samples.values()), "the load makes too little"
    missing = set(samples.values()) - {samples[name] for name in shown}
    assert not missing, f"no panel of {CONTRIB.name} shows these: {sorted(missing)}"


def test_alerts_ask_for_what_there_is_and_are_quiet(prometheus: Prometheus, samples: dict[str, str]) -> None:
    rules = prometheus.rules()
    assert len(rules) > 10
    for rule in rules:
        assert rule["health"] == "ok", rule
        assert set(METRIC.findall(rule["query"])) <= samples.keys(), rule
    assert [
        rule["name"] for rule in rules if rule["state"] != "inactive" and rule["name"] not in OF_MACHINES
    ] == []


def test_panels_lie_side_by_side() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_every_variable_that_is_used_is_there() -> None:
    text = json.dumps(DASHBOARD)
    used = set(re.findall(r"\$\{?(\w+)", text)) - {"__rate_interval", "__all"}
    assert used == set(VARIABLES)
