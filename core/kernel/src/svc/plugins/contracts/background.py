"""Periodic work in the background process: jobs, and what a running job may use.

A plugin adds jobs in its hook ``svc_background``; one process for each database runs them, each in a thread
of its own, so that a job that fails or hangs keeps nobody else from working.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from svc.database import Database
    from svc.plugins.families import Extension, Family

__all__ = ["BackgroundJob", "JobContext", "JobRegistry"]

T = TypeVar("T")


class JobContext(Protocol):
    """What a running job is handed. It may be used by the job's own thread only."""

    @property
    def plugin_id(self) -> str:
        """The plugin that added the job."""

    @property
    def configuration(self) -> Any:
        """The validated settings of that plugin, or None."""

    @property
    def database(self) -> Database:
        """The open database."""

    @property
    def logger(self) -> logging.Logger:
        """The plugin's logger."""

    def extensions(self, family: Family[T]) -> Mapping[str, Extension[T]]:
        """What other plugins have added to a family that the plugin drives, as ``PluginContext`` gives it."""

    @property
    def is_stopping(self) -> bool:
        """Whether the job shall end: its process stops, or its plugin was disabled or set anew."""

    def wait(self, seconds: float) -> bool:
        """Waits, and returns whether the job shall end; at once when it shall."""


class BackgroundJob(ABC):
    """Work that is done again and again.

    Attributes:
        name: what the status calls it; one plugin's jobs have different names.
        interval_s: seconds from the end of one run to the beginning of the next, more than 0. The first
            run begins at once.
        stuck_after_s: a run that takes longer than so many seconds counts as stuck, and is said to be wrong.
    """

    name: str
    interval_s: float
    stuck_after_s: float = 3600.0

    @abstractmethod
    def run(self, context: JobContext) -> None:
        """Does the work once, in a plain thread of the background process; may block.

        An exception is logged and shown by ``svc status``; while runs keep failing the next one comes later
        and later, up to a minute where the interval is shorter. A run that takes long asks
        ``context.is_stopping`` or waits by ``context.wait``, and returns within a few seconds when told
        to; afterwards the process ends without it. A kill can end a run at any point: the next one must
        be able to go on from there.
        """


class JobRegistry(Protocol):
    """Takes the jobs of one plugin."""

    def add(self, job: BackgroundJob) -> None:
        """Adds a job.

        Raises:
            PluginError: it is not a job, its interval is not more than 0, or its name is taken.
        """
