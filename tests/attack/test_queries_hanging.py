"""Who may write in one directory holds up the queries of nobody else."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections.abc import Callable

from attack.scale import scaled
from svc_blackbox.server import Server


def test_expressions_over_many_keys(new_server: Callable[..., Server]) -> None:
    server = new_server("data", "--auth", "disabled")
    client = server.client(timeout=40)
    client.store("/good/a.txt", b"x")
    fields = [{"name": f"f{n}", "type": "exact", "source": [f"/k.*{n}.*x$/i"]} for n in range(256)]
    client.store("/evil/.svc-config/indexes.json", json.dumps({"glob": "**/*", "indexes": fields}).encode())
    many = {f"k{n}{'1' * 200}y": n for n in range(100_000)}
    client.store("/evil/a.json", json.dumps(many).encode(), {"Content-Type": "application/json"})
    few = {f"k{n}{'1' * 200}y": n for n in range(250)}
    for number in range(10):
        client.store(f"/evil/s{number}.json", json.dumps(few).encode(), {"Content-Type": "application/json"})
    for _ in range(5):
        began = time.monotonic()
        response = client.send_json("POST", "/query", {"path": "/good", "where": []})
        assert response.status == 200, response.body
        assert time.monotonic() - began < 10
        time.sleep(1)


def test_dear_queries_starve_nobody(new_server: Callable[..., Server]) -> None:
    server = new_server("data", "--auth", "disabled", "--workers", "2")
    client = server.client(timeout=60)
    words = [f"w{n}" for n in range(300)]
    rng = random.Random(1)
    configuration = {"glob": "**/*", "indexes": [{"name": "t", "type": ["exact", "trigram"]}]}
    client.store("/.svc-config/indexes.json", json.dumps(configuration).encode())
    for first in range(0, 10_000, 2000):
        operations = [
            {
                "op": "put",
                "path": f"/d/f{n}.json",
                "content": json.dumps({"t": " ".join(rng.choices(words, k=30))}),
                "content_type": "application/json",
            }
            for n in range(first, first + 2000)
        ]
        assert client.send_json("POST", "/files/batch", {"operations": operations}).status == 200
    leaves = [{"field": "t", "op": "fuzzy", "value": f"lorim apfle{n}", "fuzziness": 10} for n in range(50)]
    dear = {"path": "/", "where": {"or": leaves}, "include_matches": True, "limit": 1000}
    end = time.monotonic() + scaled(10, most=60)

    def ask() -> None:
        try:
            with server.client(timeout=120) as own:
                own.send_json("POST", "/query", dear)
        except OSError:
            pass

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(30)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    slowest = 0.0
    with server.client(timeout=60) as cheap:
        while time.monotonic() < end:
            began = time.monotonic()
            with contextlib.suppress(OSError):
                cheap.get("/files/d/f1.json")
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(0.1)
    assert slowest < 5
