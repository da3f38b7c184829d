"""Waiting for commits: one look at HEAD for all that wait in a process, and none when nobody does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from svc.errors import SvcError

if TYPE_CHECKING:
    from svc.plugin import Database

__all__ = ["CommitWatch"]

_POLL_SECONDS = 0.01


class CommitWatch:
    """Wakes all that wait when HEAD has moved, in whichever process."""

    def __init__(self, database: Database, rest: Callable[[], None]) -> None:
        self._database = database
        self._rest = rest
        self._lock = threading.Lock()
        self._moved = threading.Event()
        self._waiting: dict[object, Callable[[], bool]] = {}
        self._is_running = False
        self.is_closed = False

    @property
    def count(self) -> int:
        """How many wait, or read between two waits."""
        return len(self._waiting)

    @contextmanager
    def joined(self, is_stopping: Callable[[], bool]) -> Iterator[None]:
        """Counts one that waits for as long as the context lasts.

        ``is_stopping`` says whether the process stops: all are woken then. Called often; cheap.
        """
        key = object()
        with self._lock:
            self._waiting[key] = is_stopping
            if not self._is_running:
                self._is_running = True
                # Before anybody looks and waits: a commit from here on wakes them.
                seen = self._database.head().sequence
                threading.Thread(target=self._run, args=(seen,), name="svc-events", daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                del self._waiting[key]

    def wait(self, sequence: int, seconds: float) -> bool:
        """Waits until HEAD is past a commit, the process stops, or the time is over."""
        moved = self._moved
        if not self.is_closed and self._database.head().sequence <= sequence:
            moved.wait(seconds)
        return self._has_moved(sequence)

    def _has_moved(self, sequence: int) -> bool:
        return not self.is_closed and self._database.head().sequence > sequence

    def close(self) -> None:
        """Ends all waits, for good."""
        self.is_closed = True
        self._wake()

    def _run(self, seen: int) -> None:
        while True:
            with self._lock:
                # The process stops as a whole: any of them knows.
                is_stopping = next(iter(self._waiting.values()), None)
                if is_stopping is None or self.is_closed:
                    self._is_running = False
                    break
            try:
                sequence = self._database.head().sequence
            except SvcError:
                # Closed: who waits finds that out.
                self.is_closed = True
                continue
            if sequence != seen or is_stopping():
                seen = sequence
                self._wake()
            time.sleep(_POLL_SECONDS)
        self._wake()
        self._rest()

    def _wake(self) -> None:
        moved, self._moved = self._moved, threading.Event()
        moved.set()
