"""Reads, writes, deletions and compare-and-swap over HTTP on several workers, some of them killed: one order
explains what everybody saw. The checker itself is shown histories of both kinds first."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from crash.clients import CUT, REFUSALS, children
from crash.journal import digest
from crash.linearizability import CREATE, DELETE, READ, SWAP, WRITE, Operation, is_linearizable
from crash.scale import SEED, scaled
from svc_blackbox.client import Client, Response, files
from svc_blackbox.server import Server

REGISTERS = 3
CLIENTS = 8
OPERATIONS = 600


def write(value, invoked, returned, replaced=False):
    return Operation(WRITE, invoked, returned, value, result=replaced)


def read(value, invoked, returned):
    return Operation(READ, invoked, returned, result=value)


LINEARIZABLE = {
    "nothing happened": [],
    "one after the other": [
        write("1", 0, 1),
        read("1", 2, 3),
        Operation(DELETE, 4, 5, result=True),
        read(None, 6, 7),
    ],
    "a read beside a write may see it": [write("1", 0, 10), read("1", 2, 3)],
    "a read beside a write may miss it": [write("1", 0, 10), read(None, 2, 3)],
    "writes at once, the later one in time wins or not": [
        write("1", 0, 10, replaced=True),
        write("2", 1, 9),
        read("1", 11, 12),
    ],
    "a lost answer, done": [Operation(WRITE, 0, value="1"), read("1", 5, 6)],
    "a lost answer, not done": [Operation(WRITE, 0, value="1"), read(None, 5, 6)],
    "a lost answer, done late": [Operation(WRITE, 0, value="1"), read(None, 5, 6), read("1", 7, 8)],
    "swaps in a row": [
        Operation(CREATE, 0, 1, "1", result=True),
        Operation(SWAP, 2, 6, "2", "1", result=True),
        Operation(SWAP, 3, 5, "3", "1", result=False),
        Operation(SWAP, 7, 8, "4", "2", result=True),
        read("4", 9, 10),
    ],
    "a swap explained by a lost write": [
        write("1", 0, 1),
        Operation(WRITE, 2, value="2"),
        Operation(SWAP, 3, 4, "3", "2", result=True),
    ],
    "a deletion between": [
        write("1", 0, 1),
        Operation(DELETE, 2, 9, result=True),
        Operation(CREATE, 3, 8, "2", result=True),
        read("2", 10, 11),
    ],
}

NOT_LINEARIZABLE = {
    "an acknowledged write is lost": [write("1", 0, 1), read(None, 2, 3)],
    "a value from nowhere": [read("1", 0, 1)],
    "an old value comes back": [
        write("1", 0, 1),
        write("2", 2, 3, replaced=True),
        read("2", 4, 5),
        read("1", 6, 7),
    ],
    "two readers disagree on the order": [
        write("1", 0, 10),
        write("2", 0, 10, replaced=True),
        read("2", 11, 12),
        read("1", 13, 14),
    ],
    "two swaps of the same value": [
        Operation(CREATE, 0, 1, "1", result=True),
        Operation(SWAP, 2, 5, "2", "1", result=True),
        Operation(SWAP, 3, 4, "3", "1", result=True),
    ],
    "two creations": [Operation(CREATE, 0, 5, "1", result=True), Operation(CREATE, 1, 4, "2", result=True)],
    "a swap that should have been done": [write("1", 0, 1), Operation(SWAP, 2, 3, "2", "1", result=False)],
    "a lost write that was seen and then not": [
        Operation(WRITE, 0, value="1"),
        read("1", 1, 2),
        read(None, 3, 4),
    ],
    "a deletion of nothing": [Operation(DELETE, 0, 1, result=True)],
    "a write seen before it was asked for": [read("1", 0, 1), write("1", 2, 3)],
    "a write that replaced nothing": [write("1", 0, 1), write("2", 2, 3, replaced=False)],
}


@pytest.mark.parametrize("name", LINEARIZABLE)
def test_the_checker_accepts(name: str) -> None:
    assert is_linearizable(LINEARIZABLE[name])


@pytest.mark.parametrize("name", NOT_LINEARIZABLE)
def test_the_checker_refuses(name: str) -> None:
    assert not is_linearizable(NOT_LINEARIZABLE[name])


def random_history(seed: int, count: int) -> list[Operation]:
    """A history that has an order: operations take effect at moments between their requests and answers."""
    chance = random.Random(seed)
    moments = sorted(chance.random() for _ in range(count))
    value: str | None = None
    history = []
    for place, moment in enumerate(moments):
        kind = chance.choice((READ, WRITE, DELETE, SWAP, CREATE))
        invoked, returned = moment - chance.random() * 0.02, moment + chance.random() * 0.02
        expected = chance.choice((value, str(place - 1)))
        operation = Operation(kind, invoked, returned, str(place), expected)
        after, answer = operation.apply(value)
        if chance.random() < 0.03:
            value = chance.choice((value, after))
            history.append(replace(operation, returned=float("inf")))
        else:
            value = after
            history.append(replace(operation, result=answer))
    return history


def test_histories_that_have_an_order_are_accepted_and_altered_ones_are_not() -> None:
    refused = 0
    for seed in range(60):
        history = random_history(seed, 80)
        assert is_linearizable(history), seed
        reads = [place for place, one in enumerate(history) if one.kind == READ and one.answered]
        place = reads[len(reads) // 2]
        history[place] = replace(history[place], result="never written")
        refused += not is_linearizable(history)
    assert refused == 60


class RegisterClient:
    """Works on a few registers, and writes down what it asked and what it was answered."""

    def __init__(self, name: int, budget: Callable[[], bool]) -> None:
        self.name = name
        self.history: list[tuple[int, Operation]] = []
        self.failure: BaseException | None = None
        self._budget = budget
        self._chance = random.Random(f"{SEED} {name}")
        self._seen: dict[int, str | None] = {}
        self._values = 0

    def run(self, url: str) -> None:
        client = Client(url)
        try:
            while self._budget():
                self._operate(client)
        except BaseException as error:
            self.failure = error
        finally:
            client.close()

    def _operate(self, client: Client) -> None:
        register = self._chance.randrange(REGISTERS)
        kind = self._chance.choice((READ, READ, READ, WRITE, SWAP, SWAP, CREATE, DELETE))
        seen = self._seen.get(register)
        if kind == SWAP and seen is None:
            kind = READ
        self._values += 1
        value = f"{self.name}.{self._values}" if kind in (WRITE, SWAP, CREATE) else None
        asked = Operation(kind, time.monotonic(), value=value, expected=seen if kind == SWAP else None)
        try:
            response = self._send(client, register, asked)
        except CUT:
            self.history.append((register, asked))
            return
        returned = time.monotonic()
        if response.status in REFUSALS:
            self.history.append((register, asked))
            return
        result = self._result(asked, response)
        self.history.append((register, replace(asked, returned=returned, result=result)))
        if kind == READ:
            self._seen[register] = result
        elif kind == DELETE:
            self._seen[register] = None
        elif kind == WRITE or result:
            self._seen[register] = value

    def _send(self, client: Client, register: int, asked: Operation) -> Response:
        target = files(f"registers/{register}")
        if asked.kind == READ:
            return client.get(target)
        if asked.kind == DELETE:
            return client.delete(target)
        headers = {}
        if asked.kind == SWAP:
            headers["If-Match"] = f'"{digest(asked.expected.encode())}"'
        elif asked.kind == CREATE:
            headers["If-None-Match"] = "*"
        return client.request("PUT", target, asked.value.encode(), headers)

    @staticmethod
    def _result(asked: Operation, response: Response) -> str | bool | None:
        answers = {
            READ: {200: response.body.decode("latin-1"), 404: None},
            WRITE: {200: True, 201: False},
            DELETE: {200: True, 404: False},
            SWAP: {200: True, 412: False},
            CREATE: {201: True, 412: False},
        }[asked.kind]
        assert response.status in answers, (asked, response.status, response.body[:500])
        return answers[response.status]


@pytest.mark.timeout(4000)
@pytest.mark.parametrize("kills", [False, True], ids=["undisturbed", "with kills"])
def test_operations_on_several_workers_have_one_order(new_server: Callable[..., Server], kills: bool) -> None:
    server = new_server("registers", "--workers", "4", "--access-log=false")
    chance = random.Random(SEED)
    for _ in range(scaled(1, most=60)):
        histories = one_history(server, chance, kills=kills)
        for register, history in histories.items():
            assert is_linearizable(history), (register, sorted(history, key=lambda one: one.invoked))
        for register in range(REGISTERS):
            server.client().delete(files(f"registers/{register}"))


def one_history(server: Server, chance: random.Random, *, kills: bool) -> dict[int, list[Operation]]:
    """Lets the clients work; returns the history of each register, which is empty at first."""
    left = iter(range(OPERATIONS))
    mutex = threading.Lock()

    def budget() -> bool:
        with mutex:
            return next(left, None) is not None

    clients = [RegisterClient(number, budget) for number in range(CLIENTS)]
    threads = [threading.Thread(target=client.run, args=(server.url,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    while kills and any(thread.is_alive() for thread in threads):
        time.sleep(0.2)
        living = children(server.pid)
        if living:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(living), signal.SIGKILL)
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a client hangs"
    histories: dict[int, list[Operation]] = {register: [] for register in range(REGISTERS)}
    for client in clients:
        if client.failure is not None:
            raise client.failure
        for register, operation in client.history:
            histories[register].append(operation)
    return histories
