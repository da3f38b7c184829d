"""The check before a start, in a process of its own: whatever is wrong is said at once, with its exit code.

The master of a server never opens the database, nor imports what opens it: descriptors, locks and threads
don't cross a fork. So a child looks, and reports over a pipe.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import Any

from svc.errors import SvcError
from svc.server.options import ServerSettings

__all__ = ["Preflight", "PreflightError", "check_before_start"]


@dataclass(frozen=True, slots=True)
class Preflight:
    """What the check found.

    Attributes:
        loopback_only: whether the auth mode lets everybody in.
        lines: what the auth mode wants to be printed, such as a bootstrap key.
    """

    loopback_only: bool
    lines: tuple[str, ...]


class PreflightError(SvcError):
    """The server can't start; carries the message and the exit code of what the check met."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]


def check_before_start(settings: ServerSettings) -> Preflight:
    """Checks plugins, auth mode and database; makes the database when it is missing. Blocks.

    Raises:
        PreflightError: something is wrong.
    """
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _run_child(settings, write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        report = pipe.read()
    _, status = os.waitpid(child, 0)
    if not report:
        code = os.waitstatus_to_exitcode(status)
        raise PreflightError(f"The check before the start died ({code}).", 1)
    outcome: dict[str, Any] = json.loads(report)
    if "error" in outcome:
        raise PreflightError(outcome["error"], outcome["exit_code"])
    return Preflight(outcome["loopback_only"], tuple(outcome["lines"]))


def _run_child(settings: ServerSettings, write_end: int) -> None:
    """The child's whole life; never returns."""
    code = 1
    try:
        try:
            outcome = _look(settings)
        except SvcError as error:
            outcome = {"error": error.message, "exit_code": error.exit_code}
        except KeyboardInterrupt:
            outcome = {"error": "Interrupted.", "exit_code": 130}
        except Exception as error:  # noqa: BLE001 - the parent shows it
            outcome = {"error": f"{type(error).__name__}: {error}", "exit_code": 1}
        with os.fdopen(write_end, "wb") as pipe:
            pipe.write(json.dumps(outcome).encode("ascii"))
        code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _look(settings: ServerSettings) -> dict[str, Any]:
    from svc.plugins import AuthMode
    from svc.server.assembly import assemble, opener_of
    from svc.server.logs import configure_logs

    configure_logs(settings["log_format"])
    assembly = assemble(settings)
    mode = assembly.auth.mode
    lines: list[str] = []
    prepares = type(mode).prepare is not AuthMode.prepare
    if prepares or not os.path.lexists(settings["database"]):
        # A full opening, with a progress bar when the index has to be made: what is made or printed here must
        # be there before the first worker.
        from svc.server.progress import progress_bar

        with (
            progress_bar("Rebuilding the key index") as progress,
            opener_of(settings, assembly.plugins)(progress) as database,
        ):
            lines.extend(mode.prepare(assembly.auth.context(database, assembly.plugins)))
    else:
        from svc.log import Log

        # The header only: workers make what is missing beside the log, and answer "starting" meanwhile.
        Log.open(settings["database"], read_only=True, create=False).close()
    return {"loopback_only": mode.loopback_only, "lines": lines}
