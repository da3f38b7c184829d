"""Many who ask at once share what is done for them."""

from __future__ import annotations

import threading

import pytest
from svc_sync.rounds import Rounds


class Work:
    """Work that lasts until it may end."""

    def __init__(self) -> None:
        self.rounds: Rounds[int] = Rounds()
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self.times = 0
        self.found: list[object] = []

    def do(self) -> int:
        self.times += 1
        number = self.times
        self.begun.release()
        assert self.may_end.acquire(timeout=10)
        if number == 2:
            raise ValueError("the second one fails")
        return number

    def ask(self) -> threading.Thread:
        def share() -> None:
            try:
                self.found.append(self.rounds.share(self.do))
            except ValueError as error:
                self.found.append(str(error))

        thread = threading.Thread(target=share)
        thread.start()
        return thread


def test_who_asks_meanwhile_shares_the_next_round() -> None:
    work = Work()
    first = work.ask()
    assert work.begun.acquire(timeout=10)
    others = [work.ask() for _ in range(20)]
    while work.rounds._next is None:
        pass
    work.may_end.release()
    first.join(10)
    assert work.begun.acquire(timeout=10)
    work.may_end.release(30)
    for thread in others:
        thread.join(10)
    assert work.found[0] == 1
    assert "the second one fails" in work.found
    assert len(work.found) == 21
    assert work.times <= 3  # threads that came late had a round of their own


def test_an_error_is_told_and_the_next_round_is_anew() -> None:
    rounds: Rounds[int] = Rounds()
    with pytest.raises(ZeroDivisionError):
        rounds.share(lambda: 1 // 0)
    assert rounds.share(lambda: 7) == 7


def test_who_leaves_in_the_middle_takes_nothing_from_others() -> None:
    rounds: Rounds[int] = Rounds()

    def leave() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rounds.share(leave)
    assert rounds.share(lambda: 7) == 7
