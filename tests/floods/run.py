"""Floods each operation with 200 requests at once, and looks how long another user's small GET takes.

Run by ``uv run tox -e floods``; names of operations run only those. It prints a table, and fails if a GET
took longer than 250 ms or health longer than 100 ms (99 of 100), or if a server did not answer at all.
Nothing else should run on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from dearest import BIG, DIRECTORY, FILES, TEXT, Flood, Material, floods

from svc_client import Client
from svc_testing import run_svc, start_server

COUNT = 200
SECONDS = 6.0
"""Clients leave when they have waited for so long, unless an option says otherwise."""

QUIET_SECONDS, AFTER_SECONDS = 1.0, 2.0
GET_MS, HEALTH_MS = 250.0, 100.0
_PAUSE = 0.02
_FLOODING = Path(__file__).with_name("flooding.py")
_PLUGINS = ("auth.magic-link", "sharing", "sync", "sync.http")


@dataclass
class Probe:
    """Asks for something again and again, each time by a connection of its own."""

    url: str
    headers: dict[str, str]
    times: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def run(self, stop: threading.Event) -> None:
        """Asks until it is stopped."""
        while not stop.wait(_PAUSE):
            began = time.perf_counter()
            try:
                request = urllib.request.Request(self.url, headers=self.headers)
                with urllib.request.urlopen(request, timeout=30) as answer:
                    answer.read()
            except OSError as error:
                self.failures.append(str(error))
            self.times.append((time.perf_counter() - began) * 1000)

    def run_for(self, seconds: float) -> None:
        """Asks for some seconds."""
        stop = threading.Event()
        timer = threading.Timer(seconds, stop.set)
        timer.start()
        self.run(stop)

    def quantile(self, part: float) -> float:
        """The time, in milliseconds, that so large a part of them did not take longer than."""
        ordered = sorted(self.times) or [0.0]
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


@dataclass
class Served:
    """A server with its data, and the tokens of those who call."""

    url: str
    pid: int
    tokens: dict[str, str]
    material: Material

    def cpu_seconds(self) -> float:
        """Processor time of the server and all that it has started."""
        total, pids = 0.0, [self.pid]
        while pids:
            pid = pids.pop()
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            except OSError:
                continue
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            pids += map(int, children)
        return total


@dataclass(frozen=True)
class Measured:
    """What was seen of one flood."""

    flood: Flood
    quiet_ms: float
    get_ms: tuple[float, float]
    health_ms: tuple[float, float]
    answers: dict[str, int]
    seconds: float
    cpu_after: float
    failures: list[str]

    @property
    def is_fair(self) -> bool:
        """Whether nobody else was held up."""
        return not self.failures and self.get_ms[0] <= GET_MS and self.health_ms[0] <= HEALTH_MS

    def row(self) -> str:
        """A row of the table."""
        answers = ", ".join(f"{count} x {status}" for status, count in sorted(self.answers.items()))
        get, health = (f"{pair[0]:.0f} / {pair[1]:.0f}" for pair in (self.get_ms, self.health_ms))
        weight, last = self.flood.operation.weight.value, f"{self.seconds:.1f}"
        cells = (f"`{self.flood.name}`", weight, f"{self.quiet_ms:.0f}", get, health, answers, last)
        return f"| {' | '.join(cells)} | {self.cpu_after:.1f} |{'' if self.is_fair else ' **held up**'}"


HEAD = """\
| Route | Weight | Quiet GET (ms) | GET (ms) | Health (ms) | Answers | Last (s) | Processor after (s) |
|---|---|---|---|---|---|---|---|"""


@contextmanager
def served(directory: Path) -> Iterator[Served]:
    """A server with two workers, the default plugins and data."""
    options = ("--auth", "self", "--workers", "2", "--background", "true", "--access-log", "false")
    with start_server(directory / "floods.svcdb", *options, plugins=None) as server:
        root = re.search(r"svc_k_\S+", server.output)
        assert root is not None, server.output
        environment = {"SVC_DATABASE": server.url, "SVC_API_KEY": root[0]}
        keys = {"root": root[0]}
        for user in ("ann", "bob"):
            for words in (f"user add {user}", f"grant add / --user {user} --allow crudl"):
                done = run_svc(*words.split(), env=environment)
                assert done.exit_code == 0, done.stderr
            made = run_svc("key", "create", "--user", user, "--json", env=environment)
            keys["user" if user == "ann" else "other"] = made.json()["key"]
        with Client(server.url, api_key=root[0]) as client:
            for plugin in _PLUGINS:
                client.request("POST", f"/system/plugins/{plugin}/enable", body=b"{}").close()
            material = _fill(client)
            tokens = {who: _token(client, key) for who, key in keys.items()}
        yield Served(server.url, server.process.pid, tokens, material)


def _token(client: Client, key: str) -> str:
    body = json.dumps({"api_key": key}).encode()
    token: str = client.request("POST", "/auth/token", body=body).json(dict)["token"]
    return token


def _fill(client: Client) -> Material:
    configuration = {
        "glob": "**/*.txt",
        "indexes": [
            {"name": "@filename", "type": ["exact", "trigram"]},
            {"name": "text", "type": "fulltext"},
        ],
    }
    _put(client, f"{DIRECTORY}/.svc-config/indexes.json", json.dumps(configuration).encode())
    for first in range(0, FILES, 1_000):
        operations = [
            {
                "op": "put",
                "path": f"/{DIRECTORY}/d{number % 10}/name-{number}.txt",
                "content": f"word {number}",
            }
            for number in range(first, first + 1_000)
        ]
        client.request("POST", "/files/batch", body=json.dumps({"operations": operations}).encode()).close()
    values = {"items": [{"a": number, "b": f"text {number}"} for number in range(800_000)]}
    _put(client, BIG, json.dumps(values).encode()[: 31 << 20])
    lines = [f"line {number}" for number in range(10_000)]
    first = ""
    for version in range(300):
        lines[version * 33] = f"changed {version}"
        answer = _put(client, TEXT, "\n".join(lines).encode())
        first = first or answer["version"]
    for number in range(300):
        _put(client, f"{DIRECTORY}/gone", str(number).encode())
    client.request("DELETE", f"/files/{DIRECTORY}/gone").close()
    return Material(first=first)


def _put(client: Client, path: str, content: bytes) -> dict[str, str]:
    answer: dict[str, str] = client.request("PUT", f"/files/{path}", body=content).json(dict)
    return answer


def measure(server: Served, flood: Flood, seconds: float) -> Measured:
    """Floods a server for some seconds at most, and watches it meanwhile and for a while after."""
    address = urlsplit(server.url)
    credential = server.tokens.get(flood.caller)
    other = {"Authorization": f"Bearer {server.tokens['other']}"}
    get = Probe(f"{server.url}/files/{DIRECTORY}/d1/name-1.txt", other)
    health = Probe(f"{server.url}/system/health", {})
    time.sleep(QUIET_SECONDS)
    quiet = Probe(get.url, other)
    quiet.run_for(QUIET_SECONDS)
    stop = threading.Event()
    threads = [threading.Thread(target=probe.run, args=(stop,)) for probe in (get, health)]
    for thread in threads:
        thread.start()
    command = [
        sys.executable,
        str(_FLOODING),
        str(address.hostname),
        str(address.port),
        str(COUNT),
        str(SECONDS),
    ]
    request = flood.as_bytes(str(address.hostname), credential)
    done = subprocess.run(command, input=request, capture_output=True, check=True)
    found = json.loads(done.stdout)
    time.sleep(1.0)
    before = server.cpu_seconds()
    time.sleep(AFTER_SECONDS)
    after = server.cpu_seconds() - before
    stop.set()
    for thread in threads:
        thread.join()
    return Measured(
        flood,
        quiet.quantile(0.99),
        (get.quantile(0.99), max(get.times, default=0.0)),
        (health.quantile(0.99), max(health.times, default=0.0)),
        found["statuses"],
        found["seconds"],
        after,
        get.failures + health.failures,
    )


def main() -> None:
    """Floods all operations, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="OPERATION")
    parser.add_argument("--directory", type=Path, help="where to put the database; it is removed")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long clients wait")
    options = parser.parse_args()
    held_up = []
    print(HEAD)
    with tempfile.TemporaryDirectory(dir=options.directory) as directory, served(Path(directory)) as server:
        for flood in floods(server.material):
            if options.names and flood.operation.name not in options.names:
                continue
            measured = measure(server, flood, options.seconds)
            print(measured.row(), flush=True)
            if measured.failures:
                print(measured.failures[:3], file=sys.stderr)
            if not measured.is_fair:
                held_up.append(flood.name)
    if held_up:
        raise SystemExit(f"Held up by: {', '.join(held_up)}")


if __name__ == "__main__":
    main()
