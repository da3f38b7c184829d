"""Small gets beside a flood: 200 of one dear request at once, and clients who leave in the middle of it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from load import begin
from measurement import Bench, kibibyte
from servers import Server, svc

_FLOOD = 200
_SECONDS = 8
_CLIENTS = 4
_PAUSE = 0.01
_FILES = 20_000
_VALUES = 600_000

Request = tuple[str, str, Any]
"""Method, path and JSON body."""

FLOODS: dict[str, Request] = {
    "listings of 10,000": ("GET", "/files/data?depth=-1&limit=10000&x=[1-200]", None),
    "globs that find nothing": ("GET", "/files/data?depth=-1&glob=**/*zzz*&x=[1-200]", None),
    "replays of all events": ("GET", "/system/events?follow=false&last_event_id=0&x=[1-200]", None),
    "logs": ("GET", "/versions/log?path=/data&limit=1000&x=[1-200]", None),
    "similar names": (
        "POST",
        "/query?x=[1-200]",
        {
            "path": "/data",
            "where": {"field": "@filename", "op": "similar", "value": "name-1-1", "threshold": 0.0},
            "limit": 1000,
        },
    ),
    "pointers into 20 MB of JSON": (
        "POST",
        "/files/fetch?x=[1-200]",
        {"items": [{"path": "/data/big.json", "json_pointer": "/items/5/a"}]},
    ),
    "archives of all files": ("POST", "/files/download?x=[1-200]", {"paths": ["/data"]}),
    "checks of 1,000 chunks": (
        "POST",
        "/blobs/check?x=[1-200]",
        {"hashes": [f"{number:064x}" for number in range(1_000)]},
    ),
    "merges into 20 MB of JSON": ("PATCH", "/files/data/big.json?x=[1-200]", {"k": 1}),
}


def slowest_gets(bench: Bench) -> None:
    """p99 of a GET of 1 KiB beside floods of 200 dear requests, whose clients leave after 8 seconds."""
    with svc(bench.directory / "x.svcdb") as server:
        _fill(server, bench.choose(_FILES, 2_000), bench.choose(_VALUES, 60_000))
        for name, request in FLOODS.items():
            quiet, flooded = [], []
            for _ in range(bench.rounds(3)):
                with begin(server, "/files/small", _CLIENTS, 2.0, _PAUSE) as loading:
                    quiet.append(loading.end().p99_ms)
                with begin(server, "/files/small", _CLIENTS, 60.0, _PAUSE) as loading:
                    subprocess.run(_flood(server, request), check=False, capture_output=True)
                    flooded.append(loading.stop().p99_ms)
            work = f"p99 of GET 1 KiB beside {_FLOOD} {name}"
            bench.report.compare(work, flooded, "ms", "the same when quiet", quiet, at_most=True)


def _fill(server: Server, files: int, values: int) -> None:
    server.put("/files/small", kibibyte(0))
    for first in range(0, files, 1000):
        operations = [
            {"op": "put", "path": f"/data/d{first}/name-{number}-{first}.txt", "content": f"word{number}"}
            for number in range(1000)
        ]
        command = server.curl("--json", "@-", server.url("/files/batch"))
        body = json.dumps({"operations": operations}).encode()
        subprocess.run(command, input=body, check=True, capture_output=True)
    document = {"items": [{"a": number, "b": f"text {number}"} for number in range(values)]}
    command = server.curl("-T", "-", server.url("/files/data/big.json"))
    subprocess.run(command, input=json.dumps(document).encode(), check=True, capture_output=True)


def _flood(server: Server, request: Request) -> list[str]:
    """A command that sends many at once, and leaves when it has waited for some seconds."""
    method, path, body = request
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    words = [] if body is None else ["-H", f"Content-Type: {kind}", "-d", json.dumps(body)]
    places = ["-Z", "--parallel-immediate", "--parallel-max", str(_FLOOD), "-o", "/dev/null"]
    return server.curl("-m", str(_SECONDS), "-X", method, *places, *words, server.url(path))
