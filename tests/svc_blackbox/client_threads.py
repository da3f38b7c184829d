"""Clients in threads of their own, for as long as a block lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Self

__all__ = ["ClientThreads"]

_LAST_ANSWER_S = 60


class ClientThreads:
    """Runs clients in a ``with`` block; at its end each ends when it was answered."""

    def __init__(self, runs: Sequence[Callable[[], None]]) -> None:
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in runs]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(_LAST_ANSWER_S)
            assert not thread.is_alive(), "a client was never answered"

    def wait(self, seconds: float) -> bool:
        """Waits; returns whether the clients were told to end."""
        return self._stop.wait(seconds)
