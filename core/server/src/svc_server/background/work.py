"""What the background process does while it is elected: a unit of views and jobs for each plugin in use.

Which plugins are in use changes while it runs. Each view and each job has a thread of its own.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from svc.database import Database
from svc.findings import Finding
from svc.plugins import ActivePlugins, EnabledPlugin, Plugins, enabled_plugins, plugin_findings
from svc.plugins.loading import load_additions
from svc_cli.processes.state_file import BackgroundState
from svc_server.background.failures import describe_failure, trace_of
from svc_server.background.followers import Feed, ViewFollower
from svc_server.background.jobs import JobList, JobRunner

__all__ = ["STOP_SECONDS", "BackgroundWork"]

STOP_SECONDS = 1.0
"""How long views and jobs may take to end; afterwards the process goes on, or ends, without them."""

logger = logging.getLogger("svc.background")


class _Unit(Struct, frozen=True):
    plugin: EnabledPlugin
    followers: tuple[ViewFollower, ...]
    runners: tuple[JobRunner, ...]

    @property
    def parts(self) -> tuple[ViewFollower | JobRunner, ...]:
        return (*self.followers, *self.runners)


class BackgroundWork:
    """The work of an elected background process. Used by its main thread only."""

    def __init__(self, database: Database, plugins: Plugins, elected_ms: int) -> None:
        self._database = database
        self._plugins = plugins
        self._active = ActivePlugins(plugins, database)
        self._feed = Feed(database)
        self._units: dict[str, _Unit] = {}
        self._refused: dict[str, Finding] = {}
        self._last_error: tuple[str, int] | None = None
        self._elected_ms = elected_ms
        self._hanging: list[tuple[threading.Thread, str, int]] = []

    def start(self) -> None:
        """Starts the plugins, and begins to follow and to run."""
        self._active.start()
        self.follow_plugins()

    def look(self) -> float:
        """Looks for commits; returns the seconds after which to look again."""
        return self._feed.look()

    def follow_plugins(self) -> None:
        """Brings what runs into step with the plugins that are enabled now."""
        enabled = enabled_plugins(self._database, self._plugins)
        # Their threads end before ``svc_stop``, which takes away what they may use, is called.
        self._end([unit for unit in self._units.values() if self._is_over(unit, enabled.get(unit.plugin.id))])
        active = self._active.current()
        self._end([unit for unit in self._units.values() if active.get(unit.plugin.id) != unit.plugin])
        for plugin_id in [name for name in self._refused if name not in self._units]:
            del self._refused[plugin_id]
        for plugin in active.values():
            if plugin.id not in self._units:
                self._begin(plugin)

    def state(self) -> BackgroundState:
        """What is told of all this."""
        units = tuple(self._units.values())
        last_error, last_error_ms = self._last_error or (None, None)
        return BackgroundState(
            pid=os.getpid(),
            elected_ms=self._elected_ms,
            views=tuple(follower.state for unit in units for follower in unit.followers),
            jobs=tuple(runner.state for unit in units for runner in unit.runners),
            last_error=last_error,
            last_error_ms=last_error_ms,
        )

    def findings(self) -> Iterator[Finding]:
        """Everything that this process finds wrong."""
        yield from self._database.findings()
        yield from plugin_findings(self._plugins, self._database)
        yield from self._active.findings()
        yield from self._refused.values()
        for unit in self._units.values():
            for part in unit.parts:
                yield from part.findings()
        self._hanging = [hanging for hanging in self._hanging if hanging[0].is_alive()]
        for thread, plugin_id, since_ms in self._hanging:
            yield Finding(
                "background.hanging",
                plugin_id,
                f"Work of the plugin {plugin_id!r} in the background does not end, although it was told to.",
                "It ends with the process: start the server anew.",
                since_ms=since_ms,
                subject=thread.name,
                detail=thread.name,
            )

    def stop(self) -> bool:
        """Ends everything; blocks for at most about ``STOP_SECONDS``.

        False where threads are left: the database must not be closed then, and the process end as by a kill.
        """
        self._end(self._units.values())
        if any(thread.is_alive() for thread, _, _ in self._hanging):
            return False
        self._active.stop()
        return True

    def _is_over(self, unit: _Unit, successor: EnabledPlugin | None) -> bool:
        if successor == unit.plugin:
            return False
        waits_for_restart = successor is not None and not self._plugins.descriptors[unit.plugin.id].reload
        return successor is None or successor.problem is not None or not waits_for_restart

    def _begin(self, plugin: EnabledPlugin) -> None:
        followers = tuple(
            ViewFollower(item.name, plugin.id, self._database.view(item.name), self._feed, self._note_error)
            for item in self._plugins.registries.views.of_plugin(plugin.id)
        )
        unit = _Unit(plugin, followers, self._jobs_of(plugin))
        self._units[plugin.id] = unit
        for part in unit.parts:
            part.start()

    def _jobs_of(self, plugin: EnabledPlugin) -> tuple[JobRunner, ...]:
        context = self._active.context(plugin.id)
        if context is None:
            return ()
        jobs = JobList(plugin.id)
        try:
            self._plugins.call("svc_background", plugin.id, context=context, jobs=jobs)
            for place in self._plugins.descriptors[plugin.id].adds.get("jobs", ()):
                for job in load_additions(plugin.id, place):
                    jobs.add(job)
        except (Exception, SystemExit) as error:
            text = describe_failure(error)
            logger.error(
                "The plugin %r has no background jobs: %s", plugin.id, text, exc_info=trace_of(error)
            )
            self._refused[plugin.id] = Finding(
                "plugin.background-failed",
                plugin.id,
                f"The plugin {plugin.id!r} failed to begin its work in the background.",
                "Its jobs don't run; it is tried again with new settings, and by a new start.",
                since_ms=time.time_ns() // 1_000_000,
                detail=text,
            )
            self._note_error(f"plugin {plugin.id}: {text}")
            return ()
        return tuple(JobRunner(job, context, self._note_error) for job in jobs.jobs.values())

    def _end(self, units: Iterable[_Unit]) -> None:
        ending = list(units)
        for unit in ending:
            del self._units[unit.plugin.id]
            for part in unit.parts:
                part.stop()
        threads = {part.thread: unit.plugin.id for unit in ending for part in unit.parts}
        for thread in _still_alive(list(threads), STOP_SECONDS):
            logger.warning("%s did not end within %.0f seconds.", thread.name, STOP_SECONDS)
            self._hanging.append((thread, threads[thread], time.time_ns() // 1_000_000))

    def _note_error(self, text: str) -> None:
        self._last_error = (text, time.time_ns() // 1_000_000)


def _still_alive(
    threads: list[threading.Thread], seconds: float, clock: Callable[[], float] = time.monotonic
) -> list[threading.Thread]:
    """Waits for threads to end, and returns those that have not; one that never began has."""
    deadline = clock() + seconds
    for thread in threads:
        if thread.ident is None:
            continue
        thread.join(max(0.0, deadline - clock()))
    return [thread for thread in threads if thread.is_alive()]
