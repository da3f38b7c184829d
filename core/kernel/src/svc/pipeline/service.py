"""What one process serves: a database, which may still be opening, and the plugins in use for it.

``Service`` is there from the start; ``LiveService`` once the database is open. Until then requests get 503.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from svc.database import pause
from svc.errors import InternalError, ServiceUnavailable, SvcError
from svc.findings import Finding, FindingDates, merge_findings
from svc.pipeline.blame import Faults
from svc.pipeline.callers import KnownCallers
from svc.pipeline.diagnosis import CheckAnswer, CheckRun, FailureMemory, auth_failure, live_findings
from svc.plugins import ActivePlugins, AuthMode, EnabledPlugin, PluginContext, SelectedAuthMode
from svc.plugins.context import make_context
from svc.plugins.registry import KERNEL

if TYPE_CHECKING:
    from svc.database import Database, Head, Version
    from svc.plugins import Plugins

__all__ = ["CommitState", "LiveService", "Opener", "Service", "StartState", "Watch"]

Watch = Callable[["Database"], Sequence[Finding]]
"""Given the open database, says what others have found wrong beside this process. Called often; cheap."""

Opener = Callable[[Callable[[int, int], None]], "Database"]
"""Opens the database; given a function to call with (bytes done, bytes in all) while it works."""

_log = logging.getLogger("svc.service")


class StartState(Struct, frozen=True):
    """How far the opening of the database is.

    ``phase`` is ``opening``, ``indexing`` (the key index is made anew), ``ready`` or ``failed``, of which
    ``message`` says why. ``progress`` (0.0 to 1.0) and ``eta_ms`` (None when unknown) are the phase's.
    """

    phase: str
    progress: float = 0.0
    eta_ms: int | None = None
    message: str | None = None


class CommitState(Struct, frozen=True):
    """The database and its plugins in use at one commit. ``auth_plugin`` is None where that is not in use."""

    head: Head
    version: Version
    active: Mapping[str, EnabledPlugin]
    contexts: Mapping[str, PluginContext]
    auth_plugin: EnabledPlugin | None
    live: LiveService


class LiveService:
    """An open database with the plugins that are in use for it in this process."""

    def __init__(self, database: Database, plugins: Plugins, selected: SelectedAuthMode) -> None:
        self.database = database
        self.plugins = plugins
        self.active = ActivePlugins(plugins, database)
        self._selected = selected
        self._contexts: dict[str, tuple[EnabledPlugin, PluginContext]] = {}
        self._commit_state: CommitState | None = None
        self._answers: tuple[float, list[CheckAnswer]] | None = None
        self._check_run = CheckRun()
        self.auth_failures = FailureMemory()
        self.callers = KnownCallers()
        self.active.start()
        self._mode = selected.bind(database, plugins)
        self._mode_settings: EnabledPlugin | None = self.active.current().get(selected.plugin_id)

    def commit_state(self) -> CommitState:
        """The state at HEAD. A request asks once; changed settings of plugins take effect here."""
        head = self.database.head()
        state = self._commit_state
        if state is None or state.head is not head:
            active = self.active.current_at(head)
            if state is not None and state.active is active:
                contexts = state.contexts
            else:
                contexts = {plugin_id: self._context_of(enabled) for plugin_id, enabled in active.items()}
            version = self.database.version_at(head)
            auth_plugin = active.get(self._selected.plugin_id)
            state = CommitState(head, version, active, contexts, auth_plugin, self)
            self._commit_state = state
        return state

    def checks(self, max_age_s: float = 0.0) -> list[CheckAnswer]:
        """What the health checks of the plugins in use say."""
        known = self._answers
        now = time.monotonic()
        if known is None or now - known[0] >= max_age_s:
            known = self._answers = (now, self._check_run.answers(self))
        return known[1]

    def findings(self, max_age_s: float = 0.0) -> tuple[Finding, ...]:
        """What is wrong with this service as this process sees it."""
        return merge_findings(live_findings(self, self.checks(max_age_s)))

    @property
    def auth_plugin_id(self) -> str:
        """The plugin of the auth mode."""
        return self._selected.plugin_id

    def note_auth_failure(self, error: Exception) -> None:
        """Remembers that the auth mode has raised what it should not."""
        self.auth_failures.note(auth_failure(self.auth_plugin_id, error))

    @property
    def auth_mode(self) -> AuthMode:
        """The mode that judges requests now."""
        return self.auth_mode_of(self.commit_state())

    def auth_mode_of(self, state: CommitState) -> AuthMode:
        """The mode that judges requests, bound to the settings that its plugin has.

        Raises ServiceUnavailable if that was disabled in the database. No other mode takes its place.
        """
        settings = state.auth_plugin
        if settings is None:
            raise ServiceUnavailable(
                f"The plugin {self._selected.plugin_id!r} of the auth mode is not in use for this database.",
                retry_after=60,
            )
        if settings is not self._mode_settings:
            self._mode = self._selected.bind(self.database, self.plugins)
            self._mode_settings = settings
        return self._mode

    def serves(self, plugin_id: str) -> bool:
        """Whether routes of a plugin exist for this database now."""
        return plugin_id == KERNEL or plugin_id in self.active.current()

    def plugin_context(self, plugin_id: str) -> PluginContext | None:
        """The context of a plugin in use, with the settings it has now; None when it is not in use."""
        return self.commit_state().contexts.get(plugin_id)

    def _context_of(self, enabled: EnabledPlugin) -> PluginContext:
        cached = self._contexts.get(enabled.id)
        if cached is None or cached[0] is not enabled:
            context = make_context(enabled.id, enabled.configuration, self.database, self.active)
            cached = self._contexts[enabled.id] = (enabled, context)
        return cached[1]

    def close(self) -> None:
        """Stops the plugins and closes the database."""
        self.active.stop()
        self.database.close()


class Service:
    """The service of one process, from the first moment on."""

    def __init__(
        self,
        plugins: Plugins,
        selected: SelectedAuthMode,
        startup_wait_s: float = 1.0,
    ) -> None:
        self.watch: Watch | None = None
        self.is_closed = False
        self.faults = Faults(plugins.descriptors)
        self._dates = FindingDates()
        self.plugins = plugins
        self.selected = selected
        self._startup_wait_s = startup_wait_s
        self._live: LiveService | None = None
        self._done = threading.Event()
        self._state = StartState("opening")
        self._phase_began = time.monotonic()

    @property
    def live(self) -> LiveService | None:
        """The live service; None while the database is being opened, or could not be."""
        return self._live

    @property
    def state(self) -> StartState:
        """How far the opening is."""
        return self._state

    @property
    def auth_mode(self) -> AuthMode:
        """See ``LiveService.auth_mode``."""
        return self.require().auth_mode

    def findings(self) -> tuple[Finding, ...]:
        """What is wrong as this process and all others see it; waits and raises as ``require`` does."""
        live = self.require()
        others = self.watch(live.database) if self.watch is not None else ()
        return self._dates.date(
            merge_findings(live.findings(max_age_s=1.0), self.faults.findings(), others), "worker"
        )

    def adopt(self, database: Database) -> LiveService:
        """Serves a database that is open."""
        live = LiveService(database, self.plugins, self.selected)
        self._live = live
        self._state = StartState("ready", 1.0, 0)
        self._done.set()
        return live

    def open(self, opener: Opener) -> None:
        """Opens the database here and now; blocks. What goes wrong is kept for the answers, and raised."""
        try:
            database = opener(self._report)
            try:
                self.adopt(database)
            except BaseException:
                database.close()
                raise
        except Exception as error:
            message = error.message if isinstance(error, SvcError) else "The database could not be opened."
            self._state = StartState("failed", message=message)
            self._done.set()
            known = isinstance(error, SvcError) and not isinstance(error, InternalError)
            _log.error(
                "the database could not be opened",
                exc_info=None if known else error,
                extra={"fields": {"reason": message}},
            )
            raise

    def require(self) -> LiveService:
        """Returns the live service; waits a moment while it opens. ServiceUnavailable has ``retry_after``."""
        live = self._live
        if live is not None:
            return live
        self._done.wait(self._startup_wait_s)
        if self._live is not None:
            return self._live
        state = self._state
        if state.phase == "failed":
            raise ServiceUnavailable(f"The database can't be served: {state.message}", retry_after=60)
        seconds = 1 if state.eta_ms is None else max(1, math.ceil(state.eta_ms / 1000))
        percent = f" ({state.progress:.0%} done)" if state.phase == "indexing" else ""
        raise ServiceUnavailable(f"The database is being opened{percent}.", retry_after=min(seconds, 60))

    def close(self) -> None:
        """Stops what is running; a second call does nothing."""
        self.is_closed = True
        live, self._live = self._live, None
        if live is not None:
            self._state = StartState("failed", message="The server is stopping.")
            live.close()

    def _report(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._state.phase != "indexing":
            self._phase_began = now
        progress = done / total if total else 1.0
        elapsed_ms = (now - self._phase_began) * 1000
        eta_ms = round(elapsed_ms * (1 - progress) / progress) if progress > 0.01 else None
        self._state = StartState("indexing", round(min(progress, 1.0), 4), eta_ms)
        # Rebuilding keeps the processor: let health be answered meanwhile.
        pause()
