"""Event streams: from a file's acknowledgement to a thousand clients of one worker, and what they cost it."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import time
from collections.abc import Callable
from pathlib import Path

from measurement import Bench
from servers import Server, running_svc

_QUIET_SECONDS = 6
_AT_ONCE = 50
_LIMIT_BYTES = 1 << 20
_HEAD = b"GET /system/events?events=server_ready,entries_created HTTP/1.1\r\nHost: bench\r\n\r\n"


def streams(bench: Bench) -> None:
    """1,000 streams of one worker: latency, frames a second, memory, and the processor while all is quiet."""
    count = bench.choose(1_000, 100)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 16_384), most))
    environment = {**os.environ, "SVC_BACKGROUND": "false"}
    with running_svc(bench.directory / "streams.svcdb", "disabled", environment) as (server, _):
        asyncio.run(_Streams(bench, server, count).measure())


class _Streams:
    def __init__(self, bench: Bench, server: Server, count: int) -> None:
        self._bench = bench
        self._server = server
        self._count = count
        self._worker = worker_of(server)
        self._ready = 0
        self._arrived: list[float] = []

    async def measure(self) -> None:
        report, count = self._bench.report, self._count
        memory = resident(self._worker)
        tasks = [asyncio.create_task(self._listen()) for _ in range(count)]
        await self._until(lambda: self._ready == count)
        report.limit(f"memory of a stream, of {count:,}", [(resident(self._worker) - memory) / count], "KiB")
        worked = _processor(self._worker)
        await asyncio.sleep(_QUIET_SECONDS)
        quiet = (_processor(self._worker) - worked) / _QUIET_SECONDS * 100
        report.limit(f"processor of a worker with {count:,} quiet streams", [quiet], "%", 10)
        first, median, last = [], [], []
        for number in range(self._bench.rounds(8)):
            self._arrived.clear()
            done = await asyncio.to_thread(self._put, number)
            await self._until(lambda: len(self._arrived) == count)
            after = sorted((at - done) * 1000 for at in self._arrived)
            first.append(after[0])
            median.append(after[count // 2])
            last.append(after[-1])
        report.limit("an event after the acknowledgement, first client", first, "ms")
        report.limit("the same, median of the clients", median, "ms", 100)
        report.limit("the same, last client", last, "ms")
        self._arrived.clear()
        began, worked = time.monotonic(), _processor(self._worker)
        for number in range(_AT_ONCE):
            await asyncio.to_thread(self._put, 1_000 + number)
        await self._until(lambda: len(self._arrived) == _AT_ONCE * count)
        frames = _AT_ONCE * count
        report.limit("frames to all, one worker", [frames / (time.monotonic() - began)], "frames/s")
        each = (_processor(self._worker) - worked) / frames * 1e6
        report.limit("processor of the worker for a frame", [each], "µs")
        for task in tasks:
            task.cancel()

    async def _listen(self) -> None:
        reader, writer = await asyncio.open_connection(*self._server.address, limit=_LIMIT_BYTES)
        writer.write(_HEAD)
        try:
            while line := await reader.readline():
                if line == b"event: entries_created\n":
                    self._arrived.append(time.monotonic())
                elif line == b"event: server_ready\n":
                    self._ready += 1
        finally:
            writer.close()

    def _put(self, number: int) -> float:
        self._server.put(f"/files/streams/{number}", b"x")
        return time.monotonic()

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():  # noqa: ASYNC110 - many of the clients would set an event many times
            await asyncio.sleep(0.002)


def worker_of(server: Server) -> int:
    """Returns the process that serves: the only child of the one that listens."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    (worker,) = [int(child) for child in children]
    return worker


def resident(process: int) -> float:
    """Returns the memory of a process that is its own, in KiB."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"^RssAnon:\s+(\d+)", status, re.MULTILINE)
    assert found is not None
    return float(found[1])


def _processor(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
