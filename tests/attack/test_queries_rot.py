"""What the index keeps is damaged: queries answer in words or right, and nobody says that all is well."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from svc_blackbox.client import Client
from svc_blackbox.server import Server

COUNT = 6000
PREFIX = {
    "path": "/",
    "where": {"field": "@path", "op": "prefix", "value": "/d/"},
    "aggregate": {"count": True},
}


def filled(server: Server) -> None:
    client = server.client()
    for first in range(0, COUNT, 3000):
        operations = [
            {"op": "put", "path": f"/d/f{number}", "content": str(number)}
            for number in range(first, first + 3000)
        ]
        assert client.send_json("POST", "/files/batch", {"operations": operations}).status == 200
    for _ in range(100):
        status = client.get("/query/status").json()
        if status["documents"] == COUNT and not status["unflushed"] and not status["jobs"]:
            return
        time.sleep(0.3)
    pytest.fail(f"Never flushed: {status}")


def healed(client: Client, seconds: float = 60.0) -> bool:
    """Whether queries answer rightly in the end; whatever else they answer meanwhile has words."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        response = client.send_json("POST", "/query", PREFIX)
        assert response.status in (200, 503), response.body
        if response.status == 200 and "meta" not in response.json():
            return bool(response.json()["count"] == COUNT)
        time.sleep(0.5)
    return False


def view(server: Server) -> Path:
    (place,) = (server.database.with_name(f"{server.database.name}.d") / "views").glob("query.index-*")
    return place


def test_a_segment_that_is_gone(new_server: Callable[..., Server]) -> None:
    server = new_server("data", "--auth", "disabled")
    filled(server)
    assert server.stop() == 0
    for segment in view(server).glob("files/*/index-*/*.seg"):
        segment.unlink()
    client = server.start().client()
    assert client.get("/query/status").status == 200
    assert healed(client)


def test_rows_that_were_cut_off(new_server: Callable[..., Server]) -> None:
    server = new_server("data", "--auth", "disabled")
    filled(server)
    assert server.stop() == 0
    rows = view(server) / "data.mdb"
    # So little of it that what every opening reads is gone: of the rest, free pages may be the most.
    os.truncate(rows, 8 * 4096)
    client = server.start().client()
    assert healed(client)
    # While everything is indexed anew on a busy machine, a view may be told to stand still as well.
    end = time.monotonic() + 60
    while True:
        told = json.loads(client.get("/system/health").body)
        assert "findings" in told, told
        codes = {finding["code"] for finding in told["findings"]}
        if codes == {"view.renewed"} or time.monotonic() > end:
            break
        time.sleep(0.5)
    assert (told["status"], codes) == ("degraded", {"view.renewed"}), told
