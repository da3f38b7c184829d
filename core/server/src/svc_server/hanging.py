"""Tells beside the database which plugin a process hangs in, also where nothing else of it goes on.

A native thread looks twice a second. A process that hangs while it starts has no entry of its own yet, so it
gets one of the kind ``starting`` for as long.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from svc.errors import SvcError
from svc.log import KERNEL_BACKENDS, scheme_of
from svc.native_calls import native
from svc.plugins.steps import hanging_steps
from svc_cli.processes.registration import Registration

if TYPE_CHECKING:
    from pathlib import Path

    from svc_server.options import ServerSettings

__all__ = ["tell_of_hanging_plugins"]

_LOOK_SECONDS = 0.5

_process = 0


def tell_of_hanging_plugins(settings: ServerSettings) -> None:
    """Begins to look, once in each process; not for a database that only a plugin can find."""
    global _process
    directory = _state_directory(settings["database"])
    if directory is None or _process == os.getpid():
        return
    _process = os.getpid()
    native("_thread", "start_new_thread")(_look, (directory, settings["plugins"]))


def _state_directory(location: str) -> Path | None:
    backend = KERNEL_BACKENDS.get(scheme_of(location) or "file")
    if backend is None:
        return None
    try:
        return backend.locate(location).state_directory
    except (SvcError, OSError):
        return None  # whoever opens it says why


def _look(directory: Path, allowed: tuple[str, ...] | None) -> None:
    sleep = native("time", "sleep")
    entry: Registration | None = None
    while True:
        found = hanging_steps()
        if found and entry is None and directory.exists():
            entry = Registration(directory, "starting")
        if entry is not None:
            if found:
                entry.publish(found, allowed)
            else:
                entry.close()
                entry = None
        sleep(_LOOK_SECONDS)
