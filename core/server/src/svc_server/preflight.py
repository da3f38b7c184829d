"""The check before a start, in a process of its own: whatever is wrong is said at once, with its exit code.

The master of a server never opens the database, and runs no code of a plugin: descriptors, locks and threads
don't cross a fork. So a child looks, and reports through a socket; meanwhile the master imports what its
workers will need. The child also makes what a start makes, in this order: the listening socket, which it
hands to the master, then the database, then what the auth mode needs. So a start that can't listen leaves
nothing behind. Before a reload it makes nothing, and opens the database for reading only.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from svc.database import Database
from svc.errors import DatabaseNotFound, PluginMissing, ReadOnly, SvcError, UsageError
from svc.plugins import (
    AuthMode,
    PluginProblem,
    Plugins,
    ProblemKind,
    enabled_plugins,
    first_plugins,
    require_enabled,
    require_fitting_options,
)
from svc_server.assembly import Assembly, assemble, opener_of
from svc_server.background.forked import forget_handlers
from svc_server.listening import bind_socket, choose_host
from svc_server.logs import configure_logs
from svc_server.options import ServerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from svc.log import StorageBackend

__all__ = ["Findings", "Preflight", "PreflightError"]

_RELOAD_SECONDS = 60.0
"""The master of a server looks after nothing meanwhile."""
_HANDLED = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP}


class Findings(Struct, frozen=True):
    """What the check found.

    Attributes:
        host: the address to listen on.
        problems: what is wrong with plugins, and does not keep the server from starting.
        listener: the listening socket; None before a reload.
    """

    host: str
    problems: tuple[PluginProblem, ...]
    listener: socket.socket | None


class PreflightError(SvcError):
    """The server can't start; carries the message and the exit code of what the check met."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]


class Preflight:
    """Checks plugins, auth mode and database, and makes what is missing; begins at once.

    Before the reload of a server that runs it makes nothing, and the caller may handle signals.
    """

    def __init__(self, settings: ServerSettings, *, is_reload: bool = False) -> None:
        self._socket, theirs = socket.socketpair()
        # The child's handlers of signals are the parent's until it has its own: what comes before waits.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        try:
            self._child = os.fork()
            if self._child == 0:
                self._socket.close()
                if is_reload:
                    forget_handlers()
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                _run_child(lambda: (_look if is_reload else _make_ready)(settings), theirs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        if is_reload:
            self._socket.settimeout(_RELOAD_SECONDS)

    def wait(self) -> Findings:
        """Returns what was found. Blocks; called once."""
        outcome, descriptors = self._receive()
        problems = tuple(
            PluginProblem(name, ProblemKind(kind), text) for name, kind, text in outcome["problems"]
        )
        listener = socket.socket(fileno=descriptors[0]) if descriptors else None
        return Findings(outcome["host"], problems, listener)

    def _receive(self) -> tuple[dict[str, Any], list[int]]:
        try:
            with self._socket:
                report, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1, flags=socket.MSG_CMSG_CLOEXEC)
                with self._socket.makefile("rb") as rest:
                    report += rest.read()
        except TimeoutError:
            os.kill(self._child, signal.SIGKILL)
            raise PreflightError(f"The check took more than {_RELOAD_SECONDS:.0f} seconds.", 1) from None
        finally:
            _, status = os.waitpid(self._child, 0)
        if not report:
            code = os.waitstatus_to_exitcode(status)
            raise PreflightError(f"The check before the start died ({code}).", 1)
        outcome: dict[str, Any] = json.loads(report)
        if "error" in outcome:
            raise PreflightError(outcome["error"], outcome["exit_code"])
        return outcome, descriptors


class _Outcome(Struct, frozen=True):
    """What a check tells the process that waits for it, as a JSON object, and the socket that it made."""

    report: dict[str, Any]
    listener: socket.socket | None = None

    @classmethod
    def of(cls, assembly: Assembly, host: str, listener: socket.socket | None = None) -> _Outcome:
        problems = [(one.plugin_id, one.kind.value, one.message) for one in assembly.plugins.problems]
        return cls({"host": host, "problems": problems}, listener)

    def send(self, end: socket.socket) -> None:
        content = json.dumps(self.report).encode("ascii")
        descriptors = [] if self.listener is None else [self.listener.fileno()]
        socket.send_fds(end, [content[:1]], descriptors)
        end.sendall(content[1:])


def _run_child(look: Callable[[], _Outcome], end: socket.socket) -> None:
    """The child's whole life; never returns."""
    code = 1
    try:
        try:
            outcome = look()
        except SvcError as error:
            outcome = _Outcome({"error": error.message, "exit_code": error.exit_code})
        except KeyboardInterrupt:
            outcome = _Outcome({"error": "Interrupted.", "exit_code": 130})
        except Exception as error:  # noqa: BLE001 - the parent shows it
            outcome = _Outcome({"error": f"{type(error).__name__}: {error}", "exit_code": 1})
        outcome.send(end)
        code = 0
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _make_ready(settings: ServerSettings) -> _Outcome:
    configure_logs(settings["log_format"])
    assembly = assemble(settings)
    plugins, mode = assembly.plugins, assembly.auth.mode
    backends = plugins.registries.storage_backends.values
    _refuse_unshared(settings["database"], backends)
    is_missing = _is_missing(settings["database"], backends)
    if is_missing:
        first = first_plugins(plugins, assembly.auth.plugin_id)
        require_fitting_options(plugins, {plugin_id: {} for plugin_id in first})
        for option in settings.of_plugins:
            if option.plugin_id not in first:
                raise PluginMissing(
                    f"{option.place} needs the plugin {option.plugin_id!r}, which a new database does not "
                    f"have: start without it, then 'svc plugins enable {option.plugin_id}'.",
                    plugin=option.plugin_id,
                )
    host = choose_host(settings["host"], mode.loopback_only)
    listener = bind_socket(host, settings["port"])
    if is_missing or plugins.overrides or type(mode).prepare is not AuthMode.prepare:
        # A full opening, with a progress bar when the index has to be made: what is made or printed here must
        # be there before the first worker.
        from svc_cli.progress import progress_bar

        with (
            progress_bar("Rebuilding the key index") as progress,
            opener_of(settings, plugins, assembly.auth)(progress) as database,
        ):
            _refuse_unfitting_options(database, plugins, settings)
            for line in mode.prepare(assembly.auth.context(database, plugins)):
                _show(line)
    return _Outcome.of(assembly, host, listener)


def _look(settings: ServerSettings) -> _Outcome:
    """Checks settings for a server that runs. The database is there, and stays as it is."""
    configure_logs(settings["log_format"])
    assembly = assemble(settings)
    plugins, mode = assembly.plugins, assembly.auth.mode
    backends = plugins.registries.storage_backends.values
    with Database(settings["database"], read_only=True, backends=backends) as database:
        context = assembly.auth.context(database, plugins)
        _refuse_unfitting_options(database, plugins, settings)
        try:
            for _line in mode.prepare(context):
                pass
        except ReadOnly:
            raise UsageError(
                f"--auth {mode.name} must make something in this database first, such as a root key, and "
                "only a start does: stop the server and start it again.",
                field="auth",
            ) from None
    return _Outcome.of(assembly, choose_host(settings["host"], mode.loopback_only))


def _refuse_unfitting_options(database: Database, plugins: Plugins, settings: ServerSettings) -> None:
    """Raises where an option would make settings bad, or have no effect since nobody enabled its plugin."""
    for option in settings.of_plugins:
        require_enabled(database, plugins, option.plugin_id, option.place)
    enabled = enabled_plugins(database, plugins)
    require_fitting_options(plugins, {plugin_id: plugin.settings for plugin_id, plugin in enabled.items()})


def _show(line: str) -> None:
    """Prints a line; raises unless it was written, since nothing is printed twice."""
    if sys.stdout is None:
        raise UsageError("Standard output is closed, and there is something to be shown this once.")
    click.echo(line)


def _refuse_unshared(location: str, backends: Mapping[str, StorageBackend]) -> None:
    """Raises UsageError for a log that the processes of a server would each find empty."""
    from svc.log import shown_location
    from svc_cli.opening import require_backend

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
