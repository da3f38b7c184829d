"""Starts ``svc`` without importing it each time: as a fork of a process that has imported it.

Starting Python and importing takes more than half of the processor time of a server's start. A run of tests
with many servers prepares one process: it imports what the master of ``svc start`` and the plugins that are
installed need, opens nothing, and forks a child for each server. The child has a process id and a session of
its own, the environment, directory and streams that it is given, and from there on runs ``svc`` as from a
shell: its master, workers and background process are those of any server. Modules that would have something
of gevent's in a worker are not imported early (``prepared_program``).

The first server of a run is the program itself, and so is one whose environment is not that of the run:
``SVC_*`` and ``PYTHONPATH`` may differ. Tests of what a start imports start the program themselves.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, ClassVar

__all__ = ["PreparedProcess", "run_to_end", "start_svc"]

MESSAGE_BYTES = 1 << 20
END_SECONDS = 30.0
_GIVEN = ("PYTHONPATH", "PYTEST_CURRENT_TEST")
_PROGRAM = Path(__file__).with_name("prepared_program.py")

Stream = int | IO[Any] | None


class PreparedProcess:
    """A child of the prepared process, with what ``subprocess.Popen`` has.

    Until somebody has waited for it, ``pid`` stays its own and ``returncode`` is None; that is negative for a
    signal. Streams are there where they are pipes.
    """

    def __init__(self, prepared: _Prepared, pid: int, stdout: IO[Any] | None, stderr: IO[Any] | None) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdout = stdout
        self.stderr = stderr
        self._prepared = prepared
        self._descriptor = os.pidfd_open(pid)
        self._waiting = threading.Lock()

    def poll(self) -> int | None:
        """Returns its exit code; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end; raises ``subprocess.TimeoutExpired``."""
        with self._waiting:
            if self.returncode is None:
                poll = select.poll()
                poll.register(self._descriptor, select.POLLIN)
                if not poll.poll(None if timeout is None else timeout * 1000):
                    raise subprocess.TimeoutExpired("svc", timeout or 0.0)
                self.returncode = self._prepared.ask({"wait": self.pid})
                os.close(self._descriptor)
            return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Tells it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it."""
        self.send_signal(signal.SIGKILL)


def start_svc(
    program: Sequence[str],
    *arguments: str,
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None = None,
    stdout: Stream = None,
    stderr: Stream = None,
    text: bool = False,
    prepared: bool = True,
) -> subprocess.Popen[Any] | PreparedProcess:
    """Starts ``svc`` in a session of its own, with no standard input.

    ``program`` is the beginning of a command line that runs ``svc`` of this interpreter, ``env`` all its
    variables. ``stdout`` and ``stderr`` are ``subprocess.PIPE``, ``DEVNULL`` or an open file; this process's
    by default. ``prepared``: it may be a fork; without, it is the program itself.
    """
    parent = _Prepared.of(env) if prepared else None
    if parent is not None:
        with open(os.devnull, "rb") as nowhere:
            return parent.start(arguments, env, os.fspath(cwd or os.getcwd()), nowhere, stdout, stderr, text)
    return subprocess.Popen(
        [*program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        text=text,
        env=env,
        cwd=cwd,
        start_new_session=True,
    )


def run_to_end(
    program: Sequence[str],
    *arguments: str,
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None = None,
    stdin: bytes = b"",
    timeout: float,
) -> subprocess.CompletedProcess[bytes]:
    """Runs ``svc`` to its end; as a fork where a server has prepared one, and never if it is to be a server.

    Arguments are those of ``start_svc``. After ``timeout`` seconds it is killed, and
    ``subprocess.TimeoutExpired`` raised.
    """
    parent = _Prepared.present(env)
    if parent is None or arguments[:1] == ("start",):
        return subprocess.run(
            [*program, *arguments],
            input=stdin,
            capture_output=True,
            timeout=timeout,
            env=env,
            cwd=cwd,
            check=False,
        )
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        given.write(stdin)
        given.seek(0)
        process = parent.start(arguments, env, os.fspath(cwd or os.getcwd()), given, output, errors)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess([*program, *arguments], code, output.read(), errors.read())


class _Prepared:
    _started: ClassVar[bool] = False
    _of: ClassVar[dict[int, _Prepared]] = {}

    @classmethod
    def of(cls, env: Mapping[str, str]) -> _Prepared | None:
        """The one for an environment; None where the program itself is to be started."""
        if _unchanging(env) != _unchanging(os.environ):
            return None
        if not cls._started:
            cls._started = True
            return None
        # A fork of this process has no part in the conversation.
        if os.getpid() not in cls._of:
            cls._of[os.getpid()] = cls()
        return cls._of[os.getpid()]

    @classmethod
    def present(cls, env: Mapping[str, str]) -> _Prepared | None:
        """The one for an environment, where there is one by now."""
        return cls._of.get(os.getpid()) if _unchanging(env) == _unchanging(os.environ) else None

    def __init__(self) -> None:
        self._asking = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_PROGRAM), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env=_unchanging(os.environ),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        atexit.register(self._end, os.getpid())

    def start(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str],
        cwd: str,
        stdin: IO[Any],
        stdout: Stream,
        stderr: Stream,
        text: bool = False,
    ) -> PreparedProcess:
        with contextlib.ExitStack() as theirs:
            output, output_pipe = _stream(stdout, 1, text, theirs)
            errors, errors_pipe = _stream(stderr, 2, text, theirs)
            request = {"arguments": arguments, "env": dict(env), "cwd": cwd}
            pid = self.ask(request, stdin.fileno(), output, errors)
        return PreparedProcess(self, pid, output_pipe, errors_pipe)

    def ask(self, request: dict[str, Any], *descriptors: int) -> int:
        with self._asking:
            socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
            answer = self._socket.recv(MESSAGE_BYTES)
        if not answer:
            raise RuntimeError("The process that starts svc has ended.")
        return int(answer)

    def _end(self, owner: int) -> None:
        if os.getpid() == owner:
            self._socket.close()
            self._process.wait(END_SECONDS)


def _unchanging(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that a server must have in common with this process to be a fork."""
    return {name: value for name, value in env.items() if name not in _GIVEN and not name.startswith("SVC_")}


def _stream(
    given: Stream, number: int, text: bool, theirs: contextlib.ExitStack
) -> tuple[int, IO[Any] | None]:
    """Returns the descriptor that the child gets, and this process's end of the pipe if it is one."""
    if given == subprocess.PIPE:
        read, write = os.pipe()
        theirs.callback(os.close, write)
        return write, os.fdopen(read, "r" if text else "rb")
    if given is None:
        return number, None
    if given == subprocess.DEVNULL:
        return theirs.enter_context(open(os.devnull, "wb")).fileno(), None
    return (given if isinstance(given, int) else given.fileno()), None
