"""Clients that count what comes: a program, so that they have a processor of their own.

Reads a line of JSON: ``port``, ``count``, ``head`` (what each sends), ``ready`` (what says that it is heard),
``marker`` (of each message) and ``wanted`` (messages for each). Prints ``ready``, and ``done`` with the time.
"""

from __future__ import annotations

import json
import resource
import select
import socket
import sys
import time


def main() -> None:
    """Connects all, and counts."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    order = json.loads(sys.stdin.readline())
    ready, marker, wanted = order["ready"].encode(), order["marker"].encode(), order["wanted"]
    poll = select.epoll()
    sockets: dict[int, socket.socket] = {}
    for _ in range(order["count"]):
        connection = socket.create_connection(("127.0.0.1", order["port"]))
        connection.sendall(order["head"].encode())
        connection.setblocking(False)
        sockets[connection.fileno()] = connection
        poll.register(connection, select.EPOLLIN)
    heard: set[int] = set()
    counts, tails = dict.fromkeys(sockets, 0), dict.fromkeys(sockets, b"")
    missing = wanted * len(sockets)
    while missing > 0:
        for descriptor, _ in poll.poll(1.0, 1024):
            # A marker may come in two parts.
            data = tails[descriptor] + sockets[descriptor].recv(262_144)
            tails[descriptor] = data[1 - len(marker) :]
            found = data.count(marker)
            counts[descriptor] += found
            missing -= found
            if descriptor not in heard and ready in data:
                heard.add(descriptor)
                if len(heard) == len(sockets):
                    print("ready", flush=True)
    assert set(counts.values()) == {wanted}
    print("done", time.monotonic(), flush=True)


if __name__ == "__main__":
    main()
