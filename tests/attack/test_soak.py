"""A mixture of requests for long: seconds in a short run, an hour in a long one. Memory must level off.

What counts is what the processes have allocated. Beside it they map the key index and the views, which grow
with the database; those pages are the system's, and it takes them back when it needs them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from attack.mixed_load import MixedLoad
from attack.processes import Usage, usage
from attack.scale import SCALE, SEED
from svc_blackbox.server import Server, living_processes

SECONDS = 6.0
LONG_SECONDS = 3600.0
PACE = 80.0
"""Requests a second: a quarter of a core of the machine where this was written."""

SAMPLE_S = 2.0
LONG_RUN_S = 1200.0
"""From here on caches are full at half time, and nothing may grow after it."""

SLACK_BYTES = 12 << 20
SHORT_GROWTH_BYTES = 64 << 20


def duration() -> float:
    """At scale 12 an hour."""
    return SECONDS if SCALE <= 1 else LONG_SECONDS * min(1.0, SCALE / 12)


PROCESSES = 4
"""The master, two workers and the background process."""


@dataclass
class Samples:
    """What each process took, in the order of time."""

    rows: dict[int, list[Usage]] = field(default_factory=dict)

    def take(self, server: Server) -> None:
        for pid in living_processes(server.pid):
            taken = usage(pid)
            if taken is not None:
                self.rows.setdefault(pid, []).append(taken)

    def table(self) -> str:
        """A line for each process: allocated and mapped MiB at ten moments."""
        lines = []
        for pid, rows in self.rows.items():
            moments = [*rows[:: max(1, len(rows) // 10)], rows[-1]]
            course = " ".join(f"{row.anonymous >> 20}+{row.mapped >> 20}" for row in moments)
            lines.append(f"{rows[0].name} {pid}: {course} MiB, {rows[-1].files} files")
        return "\n".join(lines)


def median_allocated(rows: list[Usage]) -> int:
    return sorted(row.anonymous for row in rows)[len(rows) // 2]


def test_memory_levels_off(new_server: Callable[..., Server]) -> None:
    server = new_server("soak", "--workers", "2")
    samples = Samples()
    seconds = duration()
    with MixedLoad(server.url, pace=PACE, clients=6, seed=SEED) as load:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not load.unexpected:
            samples.take(server)
            load.wait(SAMPLE_S)
    samples.take(server)
    print(f"\n{sum(load.done.values())} requests in {seconds:.0f} s: {dict(load.done)}\n{samples.table()}")
    assert not load.unexpected, load.unexpected
    # None was replaced; besides, a process that checks commands lives for a moment after the start.
    most = max(map(len, samples.rows.values()))
    lasting = {pid: rows for pid, rows in samples.rows.items() if len(rows) > most // 2}
    assert len(lasting) == PROCESSES, samples.table()
    assert set(lasting) <= set(living_processes(server.pid))
    for pid, rows in lasting.items():
        middle, last = rows[len(rows) // 2], rows[-1]
        assert last.files <= middle.files + 20, (pid, samples.table())
        assert last.threads <= middle.threads + 10, (pid, samples.table())
        if seconds < LONG_RUN_S:
            assert last.anonymous - rows[0].anonymous < SHORT_GROWTH_BYTES, samples.table()
            continue
        quarter = len(rows) // 8
        before = median_allocated(rows[len(rows) // 2 - quarter : len(rows) // 2 + quarter])
        after = median_allocated(rows[-quarter:])
        assert after - before < max(SLACK_BYTES, before // 10), samples.table()
    assert "Traceback" not in server.log_text()
    assert server.stop() == 0
