"""Does the time of ``POST /auth/magic-link`` tell whether an address is known?

Asks in turn for a known, an unknown and an inactive address, each one once, and prints the quartiles of each
kind and how often each was the slowest of its round. With a mail server that takes everything.

    python tests/bench/magic_link_timing.py [ROUNDS]
"""

from __future__ import annotations

import http.client
import json
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Sink

from svc_testing import free_port, start_server

KINDS = ("known", "unknown", "inactive")
WARM_UP = 20


def main(rounds: int) -> None:
    """Starts a server, makes its users, and prints the table."""
    mail = Controller(Sink(), hostname="127.0.0.1", port=free_port())
    mail.start()
    options = ("--auth", "self-contained", "--workers", "2", "--background", "true")
    variables = {
        "SVC_MAGIC_LINK_BASE_URL": "https://svc.example",
        "SVC_SMTP_HOST": "127.0.0.1",
        "SVC_SMTP_PORT": str(mail.port),
        "SVC_SMTP_SECURITY": "none",
        "SVC_SMTP_FROM": "svc@svc.example",
    }
    try:
        with (
            tempfile.TemporaryDirectory(prefix="svc-magic-link-") as directory,
            start_server(Path(directory) / "x.svcdb", *options, plugins=None, env=variables) as server,
        ):
            connection = http.client.HTTPConnection(str(urlsplit(server.url).netloc))
            make_users(connection, server.output, rounds + WARM_UP)
            for number in range(rounds, rounds + WARM_UP):
                ask_round(connection, number)
            show([ask_round(connection, number) for number in range(rounds)])
    finally:
        mail.stop()


def make_users(connection: http.client.HTTPConnection, output: str, count: int) -> None:
    """Makes active and inactive users, as many of each."""
    found = re.search(r"svc_k_\w+", output)
    assert found
    token = call(connection, "POST", "/auth/token", {"api_key": found[0]})["token"]
    for number in range(count):
        call(connection, "POST", "/system/users", {"username": f"known{number}@example.com"}, token)
        body = {"username": f"inactive{number}@example.com"}
        made = call(connection, "POST", "/system/users", body, token)
        call(connection, "DELETE", f"/system/users/{made['user_id']}", None, token)


def ask_round(connection: http.client.HTTPConnection, number: int) -> dict[str, float]:
    """Microseconds of one request of each kind; the first one of a round is another one each time."""
    turn = number % len(KINDS)
    taken = {}
    for kind in (*KINDS[turn:], *KINDS[:turn]):
        began = time.perf_counter_ns()
        call(connection, "POST", "/auth/magic-link", {"email": f"{kind}{number}@example.com"})
        taken[kind] = (time.perf_counter_ns() - began) / 1000
    return taken


def call(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any, token: str = ""
) -> dict[str, Any]:
    """Sends a request and returns the JSON of a good answer."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if body is not None:
        headers["Content-Type"] = "application/json"
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    document: dict[str, Any] = json.loads(answer.read())
    assert answer.status in (200, 201), document
    return document


def show(rounds: list[dict[str, float]]) -> None:
    """Prints the quartiles of each kind, and how often it was the slowest."""
    slowest = Counter(max(taken, key=taken.__getitem__) for taken in rounds)
    print(f"{len(rounds)} rounds; microseconds")
    for kind in KINDS:
        first, median, third = statistics.quantiles([taken[kind] for taken in rounds], n=4)
        share = slowest[kind] / len(rounds)
        print(f"{kind:<9} {first:7.0f} {median:7.0f} {third:7.0f}   slowest {share:.0%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 600)
