"""Runs the periodic jobs of plugins, each in a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from svc.errors import PluginError
from svc.findings import Finding
from svc.plugins import BackgroundJob, Extension, Family, PluginContext
from svc_cli.processes.state_file import JobState
from svc_server.background.failures import LONGEST_WAIT_S, describe_failure, trace_of, wait_after

if TYPE_CHECKING:
    from svc.database import Database

__all__ = ["JobList", "JobRunner"]

_LONGEST_INTERVAL_S = 10 * 365 * 86400.0

logger = logging.getLogger("svc.background")

T = TypeVar("T")


class JobList:
    """Takes the jobs of one plugin; the ``JobRegistry`` that ``svc_background`` is handed."""

    def __init__(self, plugin_id: str) -> None:
        self._plugin_id = plugin_id
        self.jobs: dict[str, BackgroundJob] = {}

    def add(self, job: BackgroundJob) -> None:
        """Adds a job; raises PluginError for what is none, or has a name that is taken."""
        shown = f"a background job of the plugin {self._plugin_id!r}"
        if not isinstance(job, BackgroundJob):
            raise PluginError(f"{type(job).__qualname__} can't be {shown}: it is no BackgroundJob.")
        name, interval = getattr(job, "name", None), getattr(job, "interval_s", None)
        if not isinstance(name, str) or not name:
            raise PluginError(f"{type(job).__qualname__} can't be {shown}: it has no name.")
        if not _is_interval(interval):
            raise PluginError(f"{name!r} can't be {shown}: interval_s must be more than 0 seconds.")
        if not _is_interval(job.stuck_after_s):
            raise PluginError(f"{name!r} can't be {shown}: stuck_after_s must be more than 0 seconds.")
        if name in self.jobs:
            raise PluginError(f"{name!r} can't be {shown}: the name is taken.", duplicate=True)
        self.jobs[name] = job


class _RunningJob(Struct, frozen=True):
    plugin: PluginContext
    stopping: threading.Event

    @property
    def plugin_id(self) -> str:
        return self.plugin.plugin_id

    @property
    def configuration(self) -> Any:
        return self.plugin.configuration

    @property
    def database(self) -> Database:
        return self.plugin.database

    @property
    def logger(self) -> logging.Logger:
        return self.plugin.logger

    def extensions(self, family: Family[T]) -> Mapping[str, Extension[T]]:
        return self.plugin.extensions(family)

    @property
    def is_stopping(self) -> bool:
        return self.stopping.is_set()

    def wait(self, seconds: float) -> bool:
        return self.stopping.wait(seconds)


class JobRunner:
    """The thread of one job."""

    def __init__(self, job: BackgroundJob, context: PluginContext, on_error: Callable[[str], None]) -> None:
        self._job = job
        self._on_error = on_error
        self._stopping = threading.Event()
        self._context = _RunningJob(context, self._stopping)
        self._stuck_after_s = float(job.stuck_after_s)
        self.state = JobState(job.name, context.plugin_id, float(job.interval_s))
        self.thread = threading.Thread(target=self._run, name=f"svc-job-{job.name}", daemon=True)

    def start(self) -> None:
        """Begins with the first run."""
        self.thread.start()

    def stop(self) -> None:
        """Tells the thread to end; it does after the run that it is at."""
        self._stopping.set()

    def findings(self) -> Iterator[Finding]:
        """What is wrong with the job: its last run failed, or the present one does not end."""
        state = self.state
        if state.error is not None:
            yield Finding(
                "job.failing",
                state.plugin,
                f"A job of the plugin {state.plugin!r} fails.",
                "It is run again by itself.",
                subject=state.name,
                detail=f"{state.name}, {state.failures} times in a row: {state.error}",
            )
        running_s = (time.time_ns() // 1_000_000 - (state.running_since_ms or 0)) / 1000
        if state.running_since_ms is not None and running_s > self._stuck_after_s:
            yield Finding(
                "job.stuck",
                state.plugin,
                f"A job of the plugin {state.plugin!r} does not come to an end.",
                "If it does not end by itself, start the server anew.",
                since_ms=state.running_since_ms,
                subject=state.name,
                detail=f"{state.name} should take no more than {self._stuck_after_s:g} s.",
            )

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._run_once()
            state = self.state
            delay = state.interval_s
            if state.failures:
                delay = max(delay, wait_after(state.failures, min(delay, LONGEST_WAIT_S)))
            self._stopping.wait(delay)

    def _run_once(self) -> None:
        began = time.monotonic()
        change = msgspec.structs.replace
        self.state = change(self.state, running_since_ms=time.time_ns() // 1_000_000)
        text: str | None = None
        try:
            self._job.run(self._context)
        except (Exception, SystemExit) as error:
            # One job may fail, all others go on.
            text = describe_failure(error)
            name = f"{self.state.name} of {self.state.plugin}"
            logger.error("The job %s failed: %s", name, text, exc_info=trace_of(error))
        state = self.state
        self.state = change(
            state,
            runs=state.runs + 1,
            failures=state.failures + 1 if text is not None else 0,
            running_since_ms=None,
            ended_ms=time.time_ns() // 1_000_000,
            duration_ms=round((time.monotonic() - began) * 1000),
            error=text,
        )
        if text is not None:
            self._on_error(f"job {state.name} of {state.plugin}: {text}")


def _is_interval(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value <= _LONGEST_INTERVAL_S
