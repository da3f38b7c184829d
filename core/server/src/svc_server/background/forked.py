"""The background process as a fork of a server's master, which has imported all that it needs.

The master has no threads, no open database and no event loop, so that a fork of it is as good as a new
program, and there in a tenth of the time.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from typing import Any

from svc_server.background.process import run_ordered

__all__ = ["ForkedProcess", "forget_handlers", "fork_background"]

_POLL_SECONDS = 0.02
_HANDLED = {signal.SIGTERM, signal.SIGINT}

logger = logging.getLogger("svc.background")


def fork_background(order: dict[str, Any]) -> ForkedProcess:
    """Starts a background process. The caller runs nothing but its main thread."""
    # The child's handlers of signals are the parent's until it has its own: what comes before waits.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    try:
        child = os.fork()
        if child == 0:
            _run_child(order, before)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return ForkedProcess(child)


class ForkedProcess:
    """A child, with what ``subprocess.Popen`` has."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, 0 where somebody else was told; None while it runs."""
        if self._code is None:
            try:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                # gunicorn's master asks after all children at once.
                self._code = 0
            else:
                self._code = os.waitstatus_to_exitcode(status) if ended else None
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end; raises ``subprocess.TimeoutExpired``."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired("background process", timeout or 0.0)
            time.sleep(_POLL_SECONDS)
        return code

    def terminate(self) -> None:
        """Tells it to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def _run_child(order: dict[str, Any], mask: set[int | signal.Signals]) -> None:
    """The child's whole life; never returns."""
    code = 1
    try:
        forget_handlers()
        _leave_descriptors()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        code = run_ordered(order)
    except BaseException:
        logger.exception("The background process failed.")
    finally:
        logging.shutdown()
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(code)


def forget_handlers() -> None:
    """Lets a child that was forked from a server's master take signals as any other process does."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)


def _leave_descriptors() -> None:
    """Closes all that the parent has open but its standard error: sockets above all."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):
                os.close(int(name))
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
