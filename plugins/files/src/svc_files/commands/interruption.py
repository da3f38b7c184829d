"""Ctrl-C that ends a long command in an orderly way: what is committed stays, and is told."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["INTERRUPTED_EXIT_CODE", "Interrupted", "Interruption"]

INTERRUPTED_EXIT_CODE = 130


class Interrupted(Exception):
    """The user has asked the command to end."""


class Interruption:
    """Within its context the first SIGINT, SIGTERM or SIGHUP only sets a mark; a second SIGINT ends at once.

    A signal that is ignored, as SIGHUP under ``nohup``, stays so.

    So a commit that is under way is finished, and what was done can be told. Outside the main thread, where
    signals cannot be caught, it does nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._caught)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raises Interrupted when a signal has come."""
        if self.requested:
            raise Interrupted

    def _caught(self, number: int, frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = True
