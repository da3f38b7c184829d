"""Looks at the installed plugins and their commands while a server runs, in a process of its own.

A worker has imported the plugins as they were at its start, and no command. What is broken beyond that (a
command that can't be imported, a plugin that was installed since) is found here before somebody needs it.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from typing import IO

import msgspec

from svc.findings import Finding
from svc_cli.processes.registration import RegisteredProcess

__all__ = ["InstallationCheck"]

_CODE = "from svc_cli.command_check import main; main()"
_FIRST_SECONDS = 3.0
"""It imports what the commands of all plugins do: not while a server has just begun."""
_AGAIN_SECONDS = 5.0
_LONGEST_SECONDS = 120.0
_MOST_BYTES = 4 * 1024 * 1024
_FINDINGS = msgspec.json.Decoder(tuple[Finding, ...])

logger = logging.getLogger("svc.worker")


class InstallationCheck:
    """Keeps the findings about what is installed up to date. For one thread or greenlet; never blocks.

    Only the worker of a database with the lowest number looks, first and whenever something is installed or
    removed.
    """

    def __init__(self, allowed: Sequence[str] | None) -> None:
        self._allowed = allowed
        self._seen: int | None = None
        self._due = time.monotonic() + _FIRST_SECONDS
        self._process: subprocess.Popen[bytes] | None = None
        self._answer: IO[bytes] | None = None
        self._began = 0.0
        self.findings: tuple[Finding, ...] = ()

    def tick(self, processes: Iterable[RegisteredProcess]) -> None:
        """Begins to look, or takes what was found; called about every second."""
        if self._process is not None:
            self._collect()
            return
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _AGAIN_SECONDS
        if os.getpid() != min((item.pid for item in processes if item.kind == "worker"), default=None):
            self._seen, self.findings = None, ()
            return
        present = _installed_when()
        if present != self._seen:
            self._seen = present
            self._begin()

    def close(self) -> None:
        """Ends what is under way."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _begin(self) -> None:
        variables = {name: value for name, value in os.environ.items() if name != "SVC_PLUGINS"}
        if self._allowed is not None:
            variables["SVC_PLUGINS"] = ",".join(self._allowed)
        self._began = time.monotonic()
        try:
            self._answer = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the answer was read
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _CODE],
                stdin=subprocess.DEVNULL,
                stdout=self._answer,
                stderr=subprocess.DEVNULL,
                env=variables,
            )
        except (OSError, ValueError) as error:
            logger.warning("The installed plugins can't be looked at: %s", error)
            self._seen = None

    def _collect(self) -> None:
        assert self._process is not None
        assert self._answer is not None
        code = self._process.poll()
        if code is None and time.monotonic() - self._began < _LONGEST_SECONDS:
            return
        self.close()
        with self._answer as stream:
            stream.seek(0)
            content = stream.read(_MOST_BYTES)
        self._answer = None
        try:
            self.findings = _FINDINGS.decode(content)
        except msgspec.DecodeError:
            self.findings = (
                Finding(
                    "server.installation",
                    "server",
                    "The installed plugins and their commands can't be looked at.",
                    "'svc plugins doctor' does the same, and shows where it fails.",
                    detail="It takes too long." if code is None else f"The process ended with {code}.",
                ),
            )


def _installed_when() -> int:
    """A number that changes when something is added to or removed from where distributions are installed."""
    found = []
    for place in sys.path:
        try:
            found.append((place, os.stat(place or ".").st_mtime_ns))
        except OSError:
            continue
    # One object in place of two for each place: it is kept for as long as the worker lives.
    return hash(tuple(found))
