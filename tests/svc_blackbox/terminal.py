"""Runs ``svc`` on a terminal of its own, to see what a person would see."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess

from svc_blackbox.server import svc_environment, svc_program

_TIMEOUT_S = 60


def run_on_terminal(*arguments: object) -> str:
    """Runs a command whose output is a terminal; it must exit 0. Returns what it wrote there."""
    master, slave = pty.openpty()
    try:
        process = subprocess.Popen(
            [svc_program(), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
            env={**svc_environment(), "TERM": "xterm-256color", "COLUMNS": "100", "PAGER": "cat"},
        )
        os.close(slave)
        slave = -1
        output = b""
        # The end of the last process on a terminal shows as an error of reading.
        with contextlib.suppress(OSError):
            while piece := os.read(master, 65536):
                output += piece
        assert process.wait(_TIMEOUT_S) == 0, output[-2000:]
        return output.decode(errors="backslashreplace")
    finally:
        os.close(master)
        if slave >= 0:
            os.close(slave)
