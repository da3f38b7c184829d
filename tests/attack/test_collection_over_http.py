"""Collections that are asked for over HTTP, of a real server with several workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from svc_blackbox.client import Client
from svc_blackbox.server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    started = Server(tmp_path_factory.mktemp("gc") / "x.svcdb", "--workers", "2").start()
    yield started
    started.close()


def replaced(client: Client, name: str) -> None:
    """Leaves half a megabyte that nobody needs."""
    client.store(f"/{name}", os.urandom(500_000))
    client.store(f"/{name}", os.urandom(500_000))


def reclaimed(client: Client) -> int:
    answer = client.post("/system/gc?dry_run=true", None)
    return int(answer.json()["reclaimed_bytes"])


def test_a_collection_answers_with_its_report(server: Server) -> None:
    client = server.client()
    replaced(client, "a")
    answer = client.request("POST", "/system/gc")
    assert answer.status == 200, answer.body
    assert answer.json()["reclaimed_bytes"] > 400_000


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("/system/gc", b'{"dry_run": true}'),
        ("/system/gc?dry-run=true", b""),
    ],
)
def test_who_asks_for_a_dry_run_in_another_way_loses_nothing(
    server: Server, target: str, body: bytes
) -> None:
    """The task of the same name takes ``dry_run`` in its body: here it must not be passed over."""
    client = server.client()
    name = str(abs(hash(target)))
    replaced(client, name)
    before = client.get("/versions/log?limit=2").json()
    version = before["commits"][1]["version"] if "commits" in before else before["items"][1]["version"]
    answer = client.request("POST", target, body, {"Content-Type": "application/json"})
    assert answer.status in (200, 400, 413, 415), answer.body
    assert client.get(f"/files/{name}?version={version}").status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_other_methods_are_refused(server: Server, method: str) -> None:
    assert server.client().request(method, "/system/gc").status == 405


@pytest.mark.parametrize("days", ["nan", "inf", "-1", "1e400", "", "%00", "100001", "x"])
def test_days_that_make_no_sense_are_refused(server: Server, days: str) -> None:
    assert server.client().request("POST", f"/system/gc?keep_days={days}").status == 400


def test_two_at_once_end_in_a_report_or_a_refusal(server: Server, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    replaced(server.client(), "b")
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: server.client().request("POST", "/system/gc"), range(6)))
    assert {answer.status for answer in answers} <= {200, 503}, [answer.body for answer in answers]
    assert any(answer.status == 200 for answer in answers)
