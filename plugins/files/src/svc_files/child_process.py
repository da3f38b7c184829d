"""Work on what somebody has stored in a process of its own: it may hang, or hold the interpreter."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Iterator

from svc.plugin import native, pause

__all__ = ["run_in_child"]

_LOOK_MS = 50
_PROGRAM = """\
import sys
sys.path[:] = sys.argv[2:]
from importlib import import_module
import_module(sys.argv[1]).main()
"""


def run_in_child(module: str, *contents: bytes) -> bytes:
    """Runs ``main`` of a module in a new process, and returns what it writes; empty where it was killed.

    For native threads, where gevent watches nothing. The child is killed once nobody waits for it.

    Args:
        module: its ``main`` reads standard input, writes standard output, and sets its own limits.
        contents: what it reads, one after the other.
    """
    with _memory_file("task") as given, _memory_file("answer") as answered:
        for piece in contents:
            _write(given, piece)
        os.lseek(given, 0, os.SEEK_SET)
        _run(module, given, answered)
        return os.pread(answered, os.fstat(answered).st_size, 0)


def _run(module: str, given: int, answered: int) -> None:
    actions = [(os.POSIX_SPAWN_DUP2, given, 0), (os.POSIX_SPAWN_DUP2, answered, 1)]
    folders = [os.path.abspath(folder) for folder in sys.path if folder]
    command = [sys.executable, "-I", "-B", "-c", _PROGRAM, module, *folders]
    pid = native("os", "posix_spawn")(sys.executable, command, {}, file_actions=actions, setsigmask=())
    try:
        _wait(pid)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        raise
    finally:
        with contextlib.suppress(ChildProcessError):  # Somebody else of this process has seen its end.
            native("os", "waitpid")(pid, 0)


def _wait(pid: int) -> None:
    """Waits for the end of a child; raises as ``pause`` where nobody waits for the caller any more."""
    descriptor = os.pidfd_open(pid)
    try:
        ended = native("select", "poll")()
        ended.register(descriptor, select.POLLIN)
        while not ended.poll(_LOOK_MS):
            pause()
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _memory_file(name: str) -> Iterator[int]:
    descriptor = os.memfd_create(name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
