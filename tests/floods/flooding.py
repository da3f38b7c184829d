"""Many of one request at once, from a process of its own, whose clients leave when they have waited.

Usage: ``python flooding.py HOST PORT COUNT SECONDS < request``; prints one JSON object: how many answers had
which status, of how many nothing came, and after how many seconds the last one was there. Each ``%%%%`` of
the request is replaced by four digits that no other request of the flood has.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import sys
import time
from collections import Counter


def flood(address: tuple[str, int], request: bytes, count: int, seconds: float) -> dict[str, object]:
    """Sends a request many times at once, and takes what is answered until the time is over."""
    selector = selectors.DefaultSelector()
    ends = time.monotonic() + seconds
    heads: dict[socket.socket, bytes] = {}
    left: dict[socket.socket, memoryview] = {}
    for number in range(count):
        client = socket.socket()
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            client.connect(address)
        heads[client] = b""
        left[client] = memoryview(request.replace(b"%%%%", b"%04d" % number))
        selector.register(client, selectors.EVENT_READ | selectors.EVENT_WRITE)
    statuses: Counter[str] = Counter()
    began = time.monotonic()
    last = began
    while heads and (rest := ends - time.monotonic()) > 0:
        for key, events in selector.select(rest):
            client = key.fileobj
            assert isinstance(client, socket.socket)
            if events & selectors.EVENT_WRITE and not _send(client, left):
                selector.modify(client, selectors.EVENT_READ)
            if events & selectors.EVENT_READ and not _receive(client, heads):
                statuses[heads.pop(client)[9:12].decode() or "closed"] += 1
                last = time.monotonic()
                selector.unregister(client)
                client.close()
    for client, head in heads.items():
        statuses[f"{head[9:12].decode()} in part" if head else "none"] += 1
        client.close()
    return {"statuses": statuses, "seconds": last - began}


def _send(client: socket.socket, left: dict[socket.socket, memoryview]) -> bool:
    """Sends some; returns whether more is left."""
    try:
        left[client] = left[client][client.send(left[client]) :]
    except BlockingIOError:
        return True
    except OSError:
        return False
    return bool(left[client])


def _receive(client: socket.socket, heads: dict[socket.socket, bytes]) -> bool:
    """Takes some of an answer; returns whether more is to come: each is the last of its connection."""
    try:
        data = client.recv(262144)
    except BlockingIOError:
        return True
    except OSError:
        return False
    if len(heads[client]) < 12:
        heads[client] += data[:12]
    return bool(data)


if __name__ == "__main__":
    host, port, count, seconds = sys.argv[1:]
    print(json.dumps(flood((host, int(port)), sys.stdin.buffer.read(), int(count), float(seconds))))
