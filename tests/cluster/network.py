"""A network of TCP lines between nodes: each can be cut, made slow, or carry everything twice.

A line leads from one node to one other, so that a partition can lie between any two of them. All lines are
served by one thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["Line", "Network"]

T = TypeVar("T")
_PIECE = 1 << 16
_START_S = 10.0


class Line:
    """The way from one node to another.

    Attributes:
        port: where the first node finds the second one.
        target: port of the second node.
        delay_s: pause before each piece.
        is_doubled: whether what is sent arrives a second time, by a connection of its own.
    """

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self.target = target
        self.delay_s = 0.0
        self.is_doubled = False
        self.is_cut = False
        self.is_silent = False
        self.writers: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        """The URL under which the first node knows the second one."""
        return f"http://127.0.0.1:{self.port}"


class Network:
    """Lines, and the thread that serves them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="network")
        self._thread.start()
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.lines: list[Line] = []

    def line(self, target: int) -> Line:
        """Opens a line to a port."""
        return self._wait(self._open(target))

    def cut(self, lines: list[Line], *, silent: bool = False) -> None:
        """Ends all connections of some lines and takes no new ones; silent: takes them, and never answers."""
        self._wait(self._cut(lines, silent))

    def mend(self) -> None:
        """Lets all lines carry everything, once and at once."""
        for line in self.lines:
            line.is_cut = line.is_silent = line.is_doubled = False
            line.delay_s = 0.0

    def close(self) -> None:
        """Ends all lines."""
        self._wait(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_S)
        self._loop.close()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_S)

    async def _open(self, target: int) -> Line:
        line = Line(0, target)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await _serve(line, reader, writer)
            line.writers.discard(writer)
            writer.transport.abort()
            self._tasks.discard(task)

        server = await asyncio.start_server(serve, "127.0.0.1", 0, family=socket.AF_INET)
        line.port = server.sockets[0].getsockname()[1]
        self._servers.append(server)
        self.lines.append(line)
        return line

    async def _cut(self, lines: list[Line], silent: bool) -> None:
        for line in lines:
            line.is_cut, line.is_silent = True, silent
            for writer in [*line.writers]:
                writer.transport.abort()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _serve(line: Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    line.writers.add(writer)
    if line.is_cut:
        if line.is_silent:
            await reader.read()
        return
    there, back = await asyncio.open_connection("127.0.0.1", line.target)
    outwards = [back]
    dropped: asyncio.Task[bytes] | None = None
    line.writers.add(back)
    try:
        if line.is_doubled:
            answers, second = await asyncio.open_connection("127.0.0.1", line.target)
            outwards.append(second)
            dropped = asyncio.create_task(answers.read())
        await asyncio.gather(_carry(line, reader, outwards), _carry(line, there, [writer]))
    finally:
        if dropped is not None:
            dropped.cancel()
        for one in outwards:
            line.writers.discard(one)
            one.transport.abort()


async def _carry(line: Line, reader: asyncio.StreamReader, writers: list[asyncio.StreamWriter]) -> None:
    """Carries pieces until either side ends; then the other ends too."""
    while piece := await reader.read(_PIECE):
        if line.delay_s:
            await asyncio.sleep(line.delay_s)
        for writer in writers:
            writer.write(piece)
            await writer.drain()
    for writer in writers:
        writer.transport.abort()
