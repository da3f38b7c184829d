"""Whoever copies a directory into itself again and again makes files by the billion, for next to nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_blackbox.client import Client, files
from svc_blackbox.memory import anonymous_bytes
from svc_blackbox.server import Server, living_processes, run_svc

MEBIBYTE = 1024 * 1024
SOON_S = 60.0
"""Views have caught up and answers have come long before; so much is for machines with other work."""

STOP_S = 8.0


def doublings(count: int, first: int = 0) -> Iterator[list[dict[str, str]]]:
    """The operations of each doubling of the files in ``/bomb/a``."""
    for number in range(first, count):
        yield [
            {"op": "copy", "from": "/bomb/a", "to": f"/bomb/b{number}"},
            {"op": "move", "from": f"/bomb/b{number}", "to": f"/bomb/a/b{number}"},
        ]


def batch_of(count: int) -> dict[str, Any]:
    operations: list[dict[str, str]] = [{"op": "put", "path": "/bomb/a/f", "content": "x"}]
    for one in doublings(count):
        operations += one
    return {"operations": operations}


def one_by_one(client: Client, count: int) -> None:
    client.store("/bomb/a/f", b"x")
    for number in range(count):
        copy = {"paths": ["/bomb/a"], "destination": f"/bomb/c{number}"}
        assert client.post("/files/copy", copy).status == 200
        to = {"to": f"/bomb/a/b{number}"}
        assert client.send_json("PATCH", files(f"/bomb/c{number}"), to).status == 200


def in_a_batch(client: Client, count: int) -> None:
    assert client.post("/files/batch", batch_of(count)).status == 200


def memory_of(server: Server) -> dict[int, int]:
    return {pid: anonymous_bytes(pid) for pid in living_processes(server.pid)}


def state_bytes(server: Server) -> int:
    directory = server.database.with_name(f"{server.database.name}.d")
    return sum(place.stat().st_blocks * 512 for place in directory.rglob("*") if place.is_file())


def wait_for_views(server: Server) -> dict[str, int]:
    """Waits until the background process has brought every view to HEAD."""
    deadline = time.monotonic() + SOON_S
    while True:
        told = run_svc("status", "-D", server.database, "--json", check=False, timeout=SOON_S)
        behind = {view["name"]: view["behind"] for view in json.loads(told.stdout)["views"]}
        if behind and not any(behind.values()):
            return behind
        assert time.monotonic() < deadline, behind
        time.sleep(0.1)


def check_answers(server: Server, *, index_is_full: bool = False) -> None:
    """What a bystander asks is answered at once."""
    statuses = ("healthy", "degraded") if index_is_full else ("healthy",)
    with Client(server.url, timeout=SOON_S) as client:
        began = time.monotonic()
        health = client.get("/system/health").json()
        assert health["status"] in statuses, run_svc("status", "-D", server.database, check=False).stdout
        assert client.get("/versions/log").status == 200
        assert client.get("/files/deleted").status == 200
        assert client.get("/files/deleted", path="/bomb/a/b7").status == 200
        assert client.get("/files/", deleted="true", depth="-1", limit="10").status == 200
        assert client.get("/versions/history/bomb/a/f").status in (200, 404)
        assert client.get("/blobs/" + "0" * 64).status == 404
        assert time.monotonic() - began < SOON_S / 2


@pytest.mark.parametrize("count", [30, 40, 60])
def test_a_batch_beyond_the_limit_is_refused_and_nothing_of_it_stays(
    new_server: Callable[..., Server], count: int
) -> None:
    server = new_server()
    client = server.client()
    client.store("/before", b"x")
    answer = client.post("/files/batch", batch_of(count))
    assert (answer.status, answer.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert answer.json()["limit"] == 1_000_000_000
    assert client.names("/") == ["before"]
    wait_for_views(server)
    assert server.stop() == 0


def test_single_requests_end_at_the_limit(new_server: Callable[..., Server]) -> None:
    server = new_server("data", "--max-tree-entries", "100000")
    client = server.client()
    client.store("/bomb/a/f", b"x")
    statuses = []
    for number in range(20):
        copy = {"paths": ["/bomb/a"], "destination": f"/bomb/c{number}"}
        statuses.append(client.post("/files/copy", copy).status)
        client.send_json("PATCH", files(f"/bomb/c{number}"), {"to": f"/bomb/a/b{number}"})
    assert statuses[0] == 200
    assert statuses[-1] == 413
    client.store("/bystander", b"x")
    assert client.read("/bystander") == b"x"
    check_answers(server)


@pytest.mark.parametrize("make", [in_a_batch, one_by_one])
def test_half_a_billion_files_hold_nobody_up(
    new_server: Callable[..., Server], make: Callable[[Client, int], None]
) -> None:
    server = new_server("data", "--workers", "2")
    # How large the index gets does not depend on how long this takes.
    run_svc("plugins", "config", "query", "-D", server.database, "--set", "maximum_documents=5000")
    client = server.client(SOON_S)
    client.store("/warm", b"x")
    check_answers(server)
    wait_for_views(server)
    before = memory_of(server)
    make(client, 28)
    wait_for_views(server)
    check_answers(server, index_is_full=True)
    assert client.delete(files("/bomb"), recursive="true").status == 200
    wait_for_views(server)
    check_answers(server, index_is_full=True)
    page = client.get("/files/deleted", limit="10").json()
    assert len(page["items"]) == 10
    assert page["has_more"]
    answer = client.post("/files/restore", {"path": "/bomb", "version": version_before(client)})
    assert answer.status == 200
    wait_for_views(server)
    check_answers(server, index_is_full=True)
    for pid, size in memory_of(server).items():
        assert size - before.get(pid, size) < 60 * MEBIBYTE
    assert state_bytes(server) < 20 * MEBIBYTE
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < STOP_S
    restarted = server.start()
    check_answers(restarted, index_is_full=True)
    assert server.stop() == 0


def test_verify_looks_at_each_directory_once(new_server: Callable[..., Server]) -> None:
    server = new_server()
    in_a_batch(server.client(SOON_S), 28)
    assert server.stop() == 0
    run_svc("verify", "-D", server.database, timeout=60)


def version_before(client: Client) -> str:
    """The version before the last commit."""
    log = client.get("/versions/log", limit="1").json()
    return str(log["commits"][0]["parent"])


def test_the_background_process_ends_in_the_middle_of_many_rows(tmp_path: Path) -> None:
    """Views that have much to do, from ordinary files, hold a stop up by no more than a moment."""
    database = tmp_path / "x.svcdb"
    tree = tmp_path / "tree"
    for directory in range(40):
        (tree / str(directory)).mkdir(parents=True)
        for number in range(500):
            (tree / str(directory) / str(number)).write_bytes(b"%d %d" % (directory, number))
    run_svc("load", "-q", "-D", database, tree)
    server = Server(database).start()
    try:
        time.sleep(0.3)
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < STOP_S
    finally:
        server.close()
