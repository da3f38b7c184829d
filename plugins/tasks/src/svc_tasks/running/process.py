"""The process of one task, as the supervisor sees it. Used by one thread."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import msgspec

from svc_tasks.api import Task, TaskProgress
from svc_tasks.running.protocol import (
    CANCEL,
    MAXIMUM_LINE,
    STOP,
    Alive,
    Cancelled,
    Completed,
    Failed,
    Logged,
    Message,
    Order,
    Progressed,
    Saved,
    Stopped,
)

__all__ = ["Outcome", "TaskProcess"]

Outcome = Completed | Failed | Cancelled | Stopped

_PROGRAM = """\
import sys
sys.path[:] = sys.argv[1:]
from svc_tasks.running.child import main
main()
"""
_DECODER = msgspec.json.Decoder(
    Alive | Progressed | Saved | Logged | Completed | Failed | Cancelled | Stopped
)
_KEPT_ERRORS = 2_000
_MOST_LINES = 2_000
"""Lines for the log of one run; further ones are dropped."""


class TaskProcess:
    """Starts the process of a task; the caller ends it with ``end``.

    ``task`` is its record when it was started, ``said_at`` when it last gave a sign of life. Times are of the
    monotonic clock. ``outcome`` is its last word; None while there is none.
    """

    def __init__(self, task: Task, order: Order) -> None:
        self.task = task
        self.began_at = self.said_at = time.monotonic()
        self.has_spoken = False
        self.has_saved = False
        self.outcome: Outcome | None = None
        self.cancelled_at: float | None = None
        self.stopped_at: float | None = None
        self._progress = Progressed(0, 0)
        self._rest = b""
        self._errors = b""
        self._lines = 0
        self._broken = False
        folders = [os.path.abspath(folder) for folder in sys.path if folder]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        for descriptor in self.descriptors:
            os.set_blocking(descriptor, False)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(msgspec.json.encode(order) + b"\n")
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def descriptors(self) -> tuple[int, int]:
        """What to wait for."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        return self._process.stdout.fileno(), self._process.stderr.fileno()

    @property
    def progress(self) -> TaskProgress:
        """How far it is."""
        told = self._progress
        share = min(1.0, told.done / told.total) if told.total > 0 else 0.0
        return TaskProgress(
            task_id=self.task.id,
            task_type=self.task.task_type,
            progress=share,
            eta_ms=told.eta_ms,
            indexed_count=told.done,
            total_count=told.total,
            message=told.message,
        )

    def take(self) -> bool:
        """Takes in what it has said; returns whether the process has ended. Does not block."""
        out, err = self.descriptors
        has_ended = self._process.poll() is not None
        for part in _available(out):
            self._rest += part
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._take_line(line)
            if len(self._rest) > MAXIMUM_LINE:
                self._break()
        for part in _available(err):
            self._errors = (self._errors + part)[-_KEPT_ERRORS:]
        return has_ended

    def tell_cancelled(self) -> None:
        """Tells it that the task was cancelled."""
        self.cancelled_at = self.cancelled_at or time.monotonic()
        self._tell(CANCEL)

    def tell_to_stop(self) -> None:
        """Tells it to end between two batches, so that another run can go on."""
        self.stopped_at = self.stopped_at or time.monotonic()
        self._tell(STOP)

    def kill(self) -> None:
        """Kills the process and what it has started; ``take`` sees the end."""
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kills the process if it runs, waits for its end, and closes the pipes. Blocks for a moment."""
        if self._process.poll() is None:
            self.kill()
            self._process.wait()
            self.take()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def words_of_end(self) -> str:
        """How the process ended that has not said a last word, as the end of a sentence."""
        code = self._process.returncode
        if self._broken:
            words = "said what no task says"
        elif code is None or code >= 0:
            words = "ended without a word" if not code else f"ended with code {code}"
        elif -code == signal.SIGKILL:
            words = "was killed, perhaps for want of memory"
        else:
            with contextlib.suppress(ValueError):
                return f"crashed ({signal.Signals(-code).name}){self._last_error()}"
            words = f"crashed (signal {-code})"
        return words + self._last_error()

    def _last_error(self) -> str:
        lines = self._errors.decode("utf-8", "replace").strip().splitlines()
        return f": {' '.join(lines[-1].split())[:200]}" if lines else ""

    def _tell(self, order: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(order)
            self._process.stdin.flush()

    def _take_line(self, line: bytes) -> None:
        try:
            message: Message = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._break()
            return
        self.said_at = time.monotonic()
        self.has_spoken = True
        if isinstance(message, Progressed):
            self._progress = message
        elif isinstance(message, Saved):
            self.has_saved = True
        elif isinstance(message, Logged):
            self._log(message)
        elif isinstance(message, Completed | Failed | Cancelled | Stopped):
            self.outcome = message

    def _log(self, line: Logged) -> None:
        self._lines += 1
        if self._lines <= _MOST_LINES and line.name.split(".")[0] == "svc":
            fields = {"task": self.task.id, "type": self.task.task_type}
            logging.getLogger(line.name).log(line.level, "%s", line.text, extra={"fields": fields})

    def _break(self) -> None:
        """What breaks the rules of the pipe is killed."""
        self._broken, self._rest = True, b""
        self.kill()


def _available(descriptor: int) -> Iterator[bytes]:
    for _ in range(64):
        try:
            part = os.read(descriptor, 1 << 16)
        except (BlockingIOError, OSError):
            return
        if not part:
            return
        yield part
