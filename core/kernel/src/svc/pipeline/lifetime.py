"""When this process stops: streams that would never end ask here."""

from __future__ import annotations

import _thread
import signal
import threading
from types import FrameType

__all__ = ["Lifetime"]


class Lifetime:
    """Tells requests that run for long that the server is stopping.

    An event stream waits by ``wait`` between its messages, and returns when that gives True; otherwise
    it would hold up a graceful shutdown until it is killed.
    """

    def __init__(self) -> None:
        self._stopping = False
        self._event = threading.Event()

    @property
    def is_stopping(self) -> bool:
        """Whether the server has begun to stop. Cheap; safe everywhere."""
        return self._stopping

    def wait(self, seconds: float) -> bool:
        """Waits, at most ``seconds``, and returns whether the server is stopping. Other requests run."""
        return self._event.wait(seconds) or self._stopping

    def stop(self) -> None:
        """Says that the server is stopping. May be called in a signal handler."""
        if not self._stopping:
            self._stopping = True
            # Not here: the interrupted code may hold the event's own lock. And not by threading.Thread,
            # whose start() waits, which no handler that runs in gevent's loop may do.
            _thread.start_new_thread(self._event.set, ())

    def follow_signals(self) -> None:
        """Calls ``stop`` at SIGTERM, SIGINT and SIGQUIT, before the handlers that are set now.

        Does nothing outside the main thread, where handlers can't be set.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            self._precede(number)

    def _precede(self, number: signal.Signals) -> None:
        following = signal.getsignal(number)
        if not callable(following):
            return

        def handle(received: int, frame: FrameType | None) -> None:
            self.stop()
            following(received, frame)

        signal.signal(number, handle)
