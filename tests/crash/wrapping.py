"""A server that is started by way of another program: one that injects faults, or limits something."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from svc_blackbox.server import Server

__all__ = ["SMALL", "WrappedServer"]

SMALL = ("--workers", "1", "--background", "false", "--access-log=false")
"""Options of a server that has only to show what is there: a start costs a second for every two processes."""


class WrappedServer(Server):
    """A server that starts as ``<program> start ...``.

    Args:
        database: the database file.
        program: what stands in the place of ``svc``.
        options: options of ``svc start``.
    """

    def __init__(self, database: Path, program: Sequence[str], *options: str) -> None:
        super().__init__(database, *options)
        script = database.with_name(f"{database.name}.start")
        script.write_text(f'#!/bin/sh\nexec {shlex.join(program)} "$@"\n')
        script.chmod(0o700)
        self.program = str(script)
