"""What is taken away ends with the next request, wherever that goes, while very much is given and taken away.

The pace is what the machine gives; a run says how many changes a second it made. Nothing depends on it.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from long_runs import Extent
from svc_blackbox.client import Client, files
from svc_testing import Server, start_server

EXTENT = Extent("REVOCATION")
WORKERS = 2
CHANGERS = 8
READERS = 3
"""Connections by which each looks: the kernel spreads them over the workers."""
CHANGES = EXTENT.scaled(400)


class Caller(Client):
    """A connection whose requests carry a token."""

    def __init__(self, url: str, token: str = "") -> None:
        super().__init__(url)
        self._fields = {"Authorization": f"Bearer {token}"} if token else {}

    def request(self, method, target, body=None, headers=None, **options):
        return super().request(method, target, body, {**self._fields, **(headers or {})}, **options)

    def ask(self, method: str, target: str, value: object = None) -> dict[str, Any]:
        """Sends JSON and returns the answer, which is a success."""
        answer = self.request(method, target) if value is None else self.send_json(method, target, value)
        assert answer.status in (200, 201), answer.body
        found: dict[str, Any] = answer.json()
        return found


@dataclass
class Ledger:
    """What all threads have done, and what went wrong."""

    changes: int = 0
    wrong: list[str] = field(default_factory=list)
    mutex: threading.Lock = field(default_factory=threading.Lock)

    def note(self, what: str, expected: int, statuses: list[int]) -> bool:
        with self.mutex:
            self.changes += 1
            if set(statuses) != {expected}:
                self.wrong.append(f"{what}: {statuses} instead of {expected}")
            return self.changes < CHANGES and not self.wrong


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("revoking") / "x.svcdb"
    with start_server(
        path, "--auth", "self-contained", "--workers", str(WORKERS), "--background", "true", plugins=None
    ) as running:
        yield running


def test_nothing_that_was_taken_away_is_good_for_one_more_request(server: Server) -> None:
    found = re.search(r"svc_k_\w+", server.output)
    assert found, server.output
    with Caller(server.url) as stranger:
        token = stranger.ask("POST", "/auth/token", {"api_key": found[0]})["token"]
    with Caller(server.url, token) as root:
        root.store("/held/file", b"secret")
    ledger, began = Ledger(), time.monotonic()
    changers = [
        threading.Thread(target=change, args=(server.url, token, number, ledger))
        for number in range(CHANGERS)
    ]
    for thread in changers:
        thread.start()
    for thread in changers:
        thread.join()
    seconds = time.monotonic() - began
    print(f"\n{ledger.changes} changes in {seconds:.1f} s: {ledger.changes / seconds:.0f} a second")
    assert ledger.wrong == []
    assert ledger.changes >= CHANGES


def change(url: str, token: str, number: int, ledger: Ledger) -> None:
    """Gives and takes away: a grant, a membership, a key; looks after each by several connections."""
    try:
        with Caller(url, token) as root:
            user = root.ask("POST", "/system/users", {"username": f"user{number}"})["user_id"]
            group = f"group{number}"
            root.ask("POST", "/system/groups", {"name": group})
            for round_ in range(CHANGES):
                if not one_round(root, url, user, group, f"{number}.{round_}", ledger):
                    return
    except Exception as error:
        ledger.wrong.append(repr(error))


def one_round(root: Caller, url: str, user: str, group: str, name: str, ledger: Ledger) -> bool:
    made = root.ask("POST", "/auth/keys", {"user_id": user, "label": name})
    token = root.ask("POST", "/auth/token", {"api_key": made["key"]})["token"]
    readers = [Caller(url, token) for _ in range(READERS)]

    def seen() -> list[int]:
        return [reader.get(files("/held/file")).status for reader in readers]

    try:
        grant = {"path": "/held", "group": f"user:{user}", "allow": "-r------"}
        grant_id = root.ask("POST", "/system/grants", grant)["grant_id"]
        goes_on = ledger.note(f"{name} granted", 200, seen())
        root.ask("DELETE", f"/system/grants/{grant_id}")
        goes_on &= ledger.note(f"{name} taken back", 403, seen())
        by_group = root.ask("POST", "/system/grants", {**grant, "group": group})["grant_id"]
        root.ask("PATCH", f"/system/groups/{group}", {"add_members": [user]})
        goes_on &= ledger.note(f"{name} member", 200, seen())
        root.ask("PATCH", f"/system/groups/{group}", {"remove_members": [user]})
        goes_on &= ledger.note(f"{name} member no more", 403, seen())
        root.ask("DELETE", f"/system/grants/{by_group}")
        root.ask("DELETE", f"/auth/keys/{made['key_id']}")
        goes_on &= ledger.note(f"{name} revoked", 401, seen())
    finally:
        for reader in readers:
            reader.close()
    return goes_on
