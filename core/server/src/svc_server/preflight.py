"""The check before a start, in a process of its own: whatever is wrong is said at once, with its exit code.

The master of a server never opens the database, and runs no code of a plugin: descriptors, locks and threads
don't cross a fork. So a child looks, and reports over a pipe; meanwhile the master imports what its workers
will need.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from svc.errors import DatabaseNotFound, SvcError, UsageError
from svc.plugins import AuthMode, PluginProblem, ProblemKind
from svc_server.assembly import assemble, opener_of
from svc_server.logs import configure_logs
from svc_server.options import ServerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from svc.log import StorageBackend

__all__ = ["Findings", "Preflight", "PreflightError"]


class Findings(Struct, frozen=True):
    """What the check found."""

    loopback_only: bool
    lines: tuple[str, ...]
    problems: tuple[PluginProblem, ...]


class PreflightError(SvcError):
    """The server can't start; carries the message and the exit code of what the check met."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]


class Preflight:
    """Checks plugins, auth mode and database, and makes the database when it is missing; begins at once."""

    def __init__(self, settings: ServerSettings) -> None:
        self._read_end, write_end = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(self._read_end)
            _run_child(settings, write_end)
        os.close(write_end)

    def wait(self) -> Findings:
        """Returns what was found. Blocks; called once."""
        with os.fdopen(self._read_end, "rb") as pipe:
            report = pipe.read()
        _, status = os.waitpid(self._child, 0)
        if not report:
            code = os.waitstatus_to_exitcode(status)
            raise PreflightError(f"The check before the start died ({code}).", 1)
        outcome: dict[str, Any] = json.loads(report)
        if "error" in outcome:
            raise PreflightError(outcome["error"], outcome["exit_code"])
        problems = tuple(
            PluginProblem(name, ProblemKind(kind), text) for name, kind, text in outcome["problems"]
        )
        return Findings(outcome["loopback_only"], tuple(outcome["lines"]), problems)


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
    configure_logs(settings["log_format"])
    assembly = assemble(settings)
    mode = assembly.auth.mode
    backends = assembly.plugins.registries.storage_backends.values
    _refuse_unshared(settings["database"], backends)
    lines: list[str] = []
    prepares = type(mode).prepare is not AuthMode.prepare
    if prepares or _is_missing(settings["database"], backends):
        # A full opening, with a progress bar when the index has to be made: what is made or printed here must
        # be there before the first worker.
        from svc.cli.progress import progress_bar

        with (
            progress_bar("Rebuilding the key index") as progress,
            opener_of(settings, assembly.plugins, assembly.auth)(progress) as database,
        ):
            lines.extend(mode.prepare(assembly.auth.context(database, assembly.plugins)))
    problems = [(one.plugin_id, one.kind.value, one.message) for one in assembly.plugins.problems]
    return {"loopback_only": mode.loopback_only, "lines": lines, "problems": problems}


def _refuse_unshared(location: str, backends: Mapping[str, StorageBackend]) -> None:
    """Raises UsageError for a log that the processes of a server would each find empty."""
    from svc.cli.opening import require_backend
    from svc.log import shown_location

    backend = require_backend(location, backends)
    if not backend.is_shared:
        raise UsageError(
            f"{shown_location(location)} is seen by one process only, and a server has several: "
            f"{backend.scheme}:// is for commands and programs.",
            field="database",
        )


def _is_missing(location: str, backends: Mapping[str, StorageBackend]) -> bool:
    """Whether there is no log yet. One that is there is opened: what is wrong with it is raised here.

    Its header only: workers make what is missing beside the log, and answer "starting" meanwhile.
    """
    from svc.log import Log, scheme_of

    if scheme_of(location) is None and not os.path.lexists(location):
        return True
    try:
        Log.open(location, read_only=True, create=False, backends=backends).close()
    except DatabaseNotFound:
        if scheme_of(location) is None:
            raise
        return True
    return False
