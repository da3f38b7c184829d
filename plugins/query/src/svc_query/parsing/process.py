"""One child process, as the pool sees it. Used by one native thread at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from svc.plugin import native
from svc_query.parsing.protocol import (
    ANSWER,
    DOCUMENT,
    FAILURE,
    FRAME,
    LAST_DOCUMENT,
    LAST_FAILURE,
    MAXIMUM_FRAME,
    READY,
    Request,
    Settings,
)

__all__ = ["ChildGone", "ChildProcess", "OutOfTime"]

_PROGRAM = """\
import sys
sys.path[:] = sys.argv[2:]
from svc_query.parsing.child import main
main(int(sys.argv[1]))
"""
_START_SECONDS = 60.0
"""For imports, also on a machine that has much else to do."""

_KINDS = frozenset({READY, DOCUMENT, FAILURE, LAST_DOCUMENT, LAST_FAILURE})
_KEPT_ERRORS = 2_000
_MOST_ERRORS = 1 << 20
_END_SECONDS = 1.0


class ChildGone(Exception):
    """The child closed its pipes or broke the protocol.

    ``words`` is what is known of its end, as the second half of a sentence.
    """

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class OutOfTime(Exception):
    """The child took longer than it may."""


class ChildProcess:
    """Starts a child; the caller ends it with ``end``.

    ``granted`` is what the kernel let the child give up, by name; ``errors`` the end of what it wrote to
    standard error.
    """

    def __init__(self, settings: Settings) -> None:
        """Starts the child and waits until it is ready. Blocks.

        Raises OSError where no process could be started, ChildGone, and OutOfTime after a minute.
        """
        self.errors = b""
        self._error_bytes = 0
        self._stalled = _START_SECONDS
        self._seconds = settings.seconds
        self._status: int | None = None
        self._token = 0
        self._reaped = False
        self.pid, self._in, self._out, self._err = _start()
        self._handle = _open_handle(self.pid)
        self._poll: Any = native("select", "poll")()
        for descriptor in (self._in, self._out, self._err):
            os.set_blocking(descriptor, False)
        self._poll.register(self._out, select.POLLIN)
        self._poll.register(self._err, select.POLLIN)
        try:
            self._send_frame(msgspec.msgpack.encode(settings))
            _, payload = self.receive(_START_SECONDS, 10_000)
            self.granted: dict[str, bool] = msgspec.json.decode(payload, type=dict[str, bool])
        except ChildGone as gone:
            self.end()
            lines = self.errors.decode("utf-8", "replace").strip().splitlines()
            raise ChildGone(": ".join([gone.words, *lines[-1:]])) from None
        except BaseException:
            self.end()
            raise

    def begin(self, request: Request) -> bytes | None:
        """Announces a file, and waits until its parser is loaded. Blocks.

        Returns None when the child is ready for the bytes; else why the parser can't be loaded. Raises
        ChildGone, when no byte of the file was taken, and OutOfTime after a minute.
        """
        self._stalled = _START_SECONDS
        self._token = request.token
        self._send_frame(msgspec.msgpack.encode(request))
        kind, payload = self.receive(_START_SECONDS, 10_000)
        return None if kind == READY else payload

    def send(self, content: Iterable[bytes]) -> None:
        """Sends the bytes of the file. Blocks.

        Raises ChildGone, though it may have answered before, and OutOfTime if it takes nothing for the time
        of a parse.
        """
        self._stalled = max(self._seconds, 10.0)
        for part in content:
            view = memoryview(part).cast("B")
            for start in range(0, len(view), MAXIMUM_FRAME):
                self._send_frame(view[start : start + MAXIMUM_FRAME])
        self._send_frame(b"")

    def receive(self, seconds: float, maximum: int) -> tuple[bytes, bytes]:
        """Waits for an answer: its kind and its bytes. Blocks.

        Raises ChildGone where it ended without one, or sent what is none, and OutOfTime.
        """
        deadline = time.monotonic() + seconds
        kind, token, length = ANSWER.unpack(self._read(ANSWER.size, deadline))
        if kind not in _KINDS or token != self._token or length > maximum:
            self.kill()
            raise ChildGone("broke the protocol")
        return kind, self._read(length, deadline)

    def kill(self) -> None:
        """Kills the process; any thread may. Does nothing to one that has ended."""
        with contextlib.suppress(OSError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            elif not self._reaped:
                os.kill(self.pid, signal.SIGKILL)

    def gone(self) -> ChildGone:
        """Ends the process, if it has not, and returns what is known of its end. Blocks for a moment."""
        words = "ended without an answer"
        if not self._reaped:
            self._wait_for_end()
            with contextlib.suppress(OSError, ChildGone):
                self._take_errors()
        self.end()
        if self._status is not None:
            words = _words_of(self._status)
        return ChildGone(words)

    def end(self) -> None:
        """Kills the process, waits for its end, and closes the pipes. Blocks for a moment."""
        if not self._reaped:
            self.kill()
            with contextlib.suppress(ChildProcessError):
                # Another part of the program may wait for all children, and have taken this one's end.
                _, self._status = native("os", "waitpid")(self.pid, 0)
            self._reaped = True
        self.abandon()

    def abandon(self) -> None:
        """Closes the pipes and leaves the process alone: it belongs to the process before a fork."""
        for descriptor in (self._in, self._out, self._err, self._handle):
            if descriptor is not None and descriptor >= 0:
                native("os", "close")(descriptor)
        self._in = self._out = self._err = -1
        self._handle = None

    @property
    def ended(self) -> bool:
        """Whether ``end`` was called."""
        return self._reaped

    @property
    def has_ended(self) -> bool:
        """Whether an idle child has closed its end of the pipe, or speaks unasked. Does not block."""
        return any(number == self._out for number, _ in self._poll.poll(0))

    def _wait_for_end(self) -> None:
        """Gives a process that closed its pipes a moment to end by itself, so that its reason is known."""
        if self._handle is not None:
            poll = native("select", "poll")()
            poll.register(self._handle, select.POLLIN)
            poll.poll(_END_SECONDS * 1_000)

    def _send_frame(self, payload: bytes | memoryview) -> None:
        self._write(FRAME.pack(len(payload)))
        self._write(payload)

    def _write(self, payload: bytes | memoryview) -> None:
        rest = memoryview(payload)
        deadline = time.monotonic() + self._stalled
        while rest:
            try:
                rest = rest[os.write(self._in, rest) :]
                deadline = time.monotonic() + self._stalled
            except BlockingIOError:
                self._wait_for(self._in, select.POLLOUT, deadline)
            except BrokenPipeError:
                raise ChildGone("ended without an answer") from None

    def _read(self, length: int, deadline: float) -> bytes:
        parts: list[bytes] = []
        while length:
            try:
                part = os.read(self._out, min(length, 1 << 20))
            except BlockingIOError:
                self._wait_for(self._out, select.POLLIN, deadline)
                continue
            if not part:
                raise self.gone()
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def _wait_for(self, descriptor: int, events: int, deadline: float) -> None:
        """Waits until a pipe is ready, and takes in meanwhile what comes from standard error."""
        self._poll.register(descriptor, events)
        try:
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise OutOfTime
                ready = {number for number, _ in self._poll.poll(min(left, 60.0) * 1_000 + 1)}
                if self._err in ready:
                    self._take_errors()
                if descriptor in ready:
                    return
                if descriptor == self._in and self._out in ready:
                    # It answers, or has ended, before it has taken everything.
                    raise ChildGone("ended without an answer")
        finally:
            if descriptor == self._in:
                self._poll.unregister(descriptor)

    def _take_errors(self) -> None:
        with contextlib.suppress(BlockingIOError):
            part = os.read(self._err, 1 << 16)
            if not part:
                with contextlib.suppress(KeyError):
                    self._poll.unregister(self._err)
                return
            self._error_bytes += len(part)
            self.errors = (self.errors + part)[-_KEPT_ERRORS:]
        if self._error_bytes > _MOST_ERRORS:
            self.kill()
            raise ChildGone("wrote more to its standard error than it may")


def _start() -> tuple[int, int, int, int]:
    if not sys.executable:
        raise FileNotFoundError("Python does not know where its own program is")
    pairs: list[tuple[int, int]] = []
    try:
        pairs.extend(_pipe() for _ in range(3))
        (their_in, our_in), (our_out, their_out), (our_err, their_err) = pairs
        pid: int = native("os", "posix_spawn")(
            sys.executable,
            [sys.executable, "-I", "-B", "-c", _PROGRAM, str(os.getpid()), *_folders()],
            {},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, their_in, 0),
                (os.POSIX_SPAWN_DUP2, their_out, 1),
                (os.POSIX_SPAWN_DUP2, their_err, 2),
            ],
            setpgroup=0,
            setsigmask=(),
        )
    except BaseException:
        for descriptor in (number for pair in pairs for number in pair):
            native("os", "close")(descriptor)
        raise
    for descriptor in (their_in, their_out, their_err):
        native("os", "close")(descriptor)
    return pid, our_in, our_out, our_err


def _folders() -> Sequence[str]:
    """Where this process imports from; the working directory only where it is named."""
    return [os.path.abspath(folder) for folder in sys.path if folder]


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are not the numbers that the child's own ends get."""
    ends = os.pipe()
    if min(ends) > 2:
        return ends
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends)
    for end in ends:
        native("os", "close")(end)
    return moved[0], moved[1]


def _open_handle(pid: int) -> int | None:
    """A handle that means this process even when its number is used again; None where the kernel has none."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _words_of(status: int) -> str:
    if not os.WIFSIGNALED(status):
        code = os.WEXITSTATUS(status)
        return "ended its process" if code == 0 else f"ended its process with code {code}"
    number = os.WTERMSIG(status)
    if number == signal.SIGKILL:
        return "was killed, perhaps for want of memory"
    if number in (signal.SIGALRM, signal.SIGXCPU):
        return "used more time than it may"
    if number == signal.SIGSYS:
        return "made a system call that it may not make"
    return f"crashed ({signal.Signals(number).name})"
