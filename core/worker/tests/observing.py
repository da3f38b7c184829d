"""Runs a case of the corpus on a connection, and tells what came of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from corpus import Case
from wire import Answer, Client

PROBE = b"GET /probe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a server did.

    Attributes:
        statuses: of its answers.
        closes: whether it closed behind them.
        answers: themselves.
    """

    statuses: tuple[int, ...]
    closes: bool
    answers: tuple[Answer, ...] = ()

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.statuses)) or 'nothing'}{', closes' if self.closes else ''}"


def observe(case: Case, address, pieces: Iterable[bytes], timeout: float = 8.0) -> Outcome:
    """Sends the pieces, then a probe on the same connection; collects what comes back."""
    answers: list[Answer] = []
    with Client(address, timeout) as client:
        for piece in pieces:
            client.send(piece)
        with contextlib.suppress(TimeoutError):
            while len(answers) < len(case.statuses):
                answer = client.answer(to_head=case.head_request and not answers)
                if answer is None:
                    break
                answers.append(answer)
                if answer.status == 100 and case.statuses == (100,):
                    # The rest of that exchange has a test of its own.
                    return Outcome((100,), False, tuple(answers))
            client.send(PROBE)
            while (answer := client.answer()) is not None:
                if answer.status == 200 and answer.body.find(b'"/probe"') >= 0:
                    return Outcome(tuple(a.status for a in answers), False, tuple(answers))
                answers.append(answer)
    return Outcome(tuple(answer.status for answer in answers), True, tuple(answers))


def random_pieces(data: bytes, random) -> list[bytes]:
    """Cuts ``data`` at a few random places."""
    cuts = sorted({0, len(data), *(random.randrange(len(data) + 1) for _ in range(random.randrange(1, 8)))})
    return [data[start:end] for start, end in pairwise(cuts)]
