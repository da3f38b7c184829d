"""What many ask for at once is done once for all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from svc.plugin import without_turn

__all__ = ["Rounds"]

T = TypeVar("T")


class _Round(Generic[T]):
    """One time that it is done; ``outcome`` gives what came of it, None where nothing did."""

    def __init__(self) -> None:
        self.is_over = threading.Event()
        self.outcome: Callable[[], T] | None = None


class Rounds(Generic[T]):
    """One does the work of a round; who comes meanwhile gets the outcome of the next one.

    A round that had begun before somebody asked may not show what that one has just written. Called in
    requests.
    """

    def __init__(self) -> None:
        self._present: _Round[T] | None = None
        self._next: _Round[T] | None = None

    def share(self, function: Callable[[], T]) -> T:
        """Returns what a call of the function returns that begins from now on, or raises what it raises."""
        mine = self._next
        while True:
            if mine is None or (mine.is_over.is_set() and mine.outcome is None):
                # The first one, or whoever did the work has left without an outcome.
                mine = self._next = self._next or _Round()
            if mine.is_over.is_set() and mine.outcome is not None:
                return mine.outcome()
            if self._present is None and self._next is mine:
                self._do(mine, function)
            else:
                with without_turn():
                    (self._present or mine).is_over.wait()

    def _do(self, mine: _Round[T], function: Callable[[], T]) -> None:
        self._present, self._next = mine, None
        try:
            result = function()
            mine.outcome = lambda: result
        except Exception as error:  # noqa: BLE001 - all who have asked for it are told
            failure = error

            def fail() -> T:
                raise failure

            mine.outcome = fail
        finally:
            self._present = None
            mine.is_over.set()
