"""The processes beside each other: processor time of the background process, memory of all at rest."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial

import processes
import wrk
from measurement import Bench
from servers import Server, running_svc, svc

_SECONDS = 3.0
_MOST_BEHIND_S = 60.0
_BACKGROUND = "svc-background"


def puts(bench: Bench) -> None:
    """Processor time of the background process for each durable PUT of 1 KiB, beside that of the worker."""
    runs = iter(range(10_000))
    with svc(bench.directory / "background.svcdb") as own:
        for clients in (32, 1):
            measure = partial(_microseconds_a_put, own, clients, runs)
            rounds = [measure() for _ in range(bench.rounds(5))]
            background, worker = ([costs[which] for costs in rounds] for which in (0, 1))
            work = f"background process, each PUT 1 KiB of {clients} connection{'s' if clients > 1 else ''}"
            bench.report.compare(work, background, "us", "the worker", worker)


def memory(bench: Bench) -> None:
    """Memory of all processes of a server at rest, one worker, shared pages in parts (PSS)."""
    database = bench.directory / "rest.svcdb"
    # As where it is installed: each process that compiles its modules takes megabytes more for that.
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(bench.directory / "compiled")}
    environment = {**os.environ, **compiled}
    totals: list[float] = []
    parts: dict[str, list[float]] = {}
    for round_number in range(bench.rounds(3) + 1):
        with running_svc(database, "self", environment) as (own, _):
            found = _memory_at_rest(own.pid)
        if round_number:  # The first one makes the database, its first signing key, and the bytecode.
            totals.append(sum(found.values()))
            for name, size in found.items():
                parts.setdefault(name, []).append(size)
    bench.report.limit("memory of svc start at rest, 1 worker, all processes", totals, "MiB", 49)
    for name, sizes in parts.items():
        bench.report.limit(f"of these: {name}", sizes, "MiB")


def _memory_at_rest(master: int) -> dict[str, float]:
    """MiB of each process, when what the start itself does is done."""
    deadline = time.monotonic() + _MOST_BEHIND_S
    while len(processes.children(master)) != 2 or any(map(processes.children, processes.children(master))):
        if time.monotonic() > deadline:
            raise RuntimeError("the processes of the start do not end")
        time.sleep(0.5)
    time.sleep(2)
    names = {master: "the master"}
    for pid in processes.children(master):
        names[pid] = "the background process" if processes.name_of(pid) == _BACKGROUND else "the worker"
    return {name: processes.proportional_bytes(pid) / (1 << 20) for pid, name in names.items()}


def _microseconds_a_put(server: Server, clients: int, runs: Iterator[int]) -> tuple[float, float]:
    """Processor time of the background process and of the worker, until both have nothing left to do."""
    found = {processes.name_of(pid): pid for pid in processes.children(server.pid)}
    background = found.pop(_BACKGROUND)
    (worker,) = found.values()
    before = processes.processor_seconds(background), processes.processor_seconds(worker)
    load = wrk.put(server, "/files/new/", clients, _SECONDS, f"r{next(runs)}")
    _wait_until_idle(background)
    after = processes.processor_seconds(background), processes.processor_seconds(worker)
    count = load.rate * _SECONDS
    return (after[0] - before[0]) / count * 1e6, (after[1] - before[1]) / count * 1e6


def _wait_until_idle(pid: int) -> None:
    """Waits until a process has used less than a twentieth of a processor for half a second."""
    deadline = time.monotonic() + _MOST_BEHIND_S
    while time.monotonic() < deadline:
        before = processes.processor_seconds(pid)
        time.sleep(0.5)
        if processes.processor_seconds(pid) - before < 0.025:
            return
    raise RuntimeError("the background process does not come to rest")
