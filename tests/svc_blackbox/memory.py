"""How much memory the processes of a server take while something goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from svc_blackbox.server import Server, living_processes

_INTERVAL_S = 0.01


def anonymous_bytes(pid: int) -> int:
    """Memory of a process that no file backs: what it has allocated. 0 when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


@dataclass
class Peak:
    """The most that one process of a server had allocated, and what it had at the beginning."""

    start: int = 0
    most: int = 0

    @property
    def growth(self) -> int:
        """How much came on top of the beginning."""
        return self.most - self.start


@contextmanager
def watch_memory(server: Server) -> Iterator[Peak]:
    """Watches the processes of a server, a hundred times a second, until the block ends."""
    peak, stop = Peak(), threading.Event()

    def most() -> int:
        return max((anonymous_bytes(pid) for pid in living_processes(server.pid)), default=0)

    def watch() -> None:
        processes = living_processes(server.pid)
        while not stop.wait(_INTERVAL_S):
            peak.most = max(peak.most, *(anonymous_bytes(pid) for pid in processes))

    peak.start = peak.most = most()
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()
        peak.most = max(peak.most, most())
