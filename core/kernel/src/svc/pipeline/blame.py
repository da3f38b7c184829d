"""Which plugin a failure is of: by its traceback, so that a driver is not blamed for what it calls."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from svc.errors import SvcError
from svc.findings import Finding, describe_failure
from svc.plugins.registry import KERNEL

if TYPE_CHECKING:
    from svc.plugins import PluginDescriptor

__all__ = ["Faults"]

_REPEATED = 3
_WITHIN_SECONDS = 600.0
_MOST_KEPT = 100


class Faults:
    """Counts the failures of code of plugins in requests; what fails again and again is a finding."""

    def __init__(self, descriptors: Mapping[str, PluginDescriptor]) -> None:
        self._packages = {descriptor.package: plugin_id for plugin_id, descriptor in descriptors.items()}
        self._times: dict[tuple[str, str], deque[float]] = {}
        self._last: dict[tuple[str, str], str] = {}

    def note(self, error: BaseException, owner: str, place: str) -> str:
        """Remembers a failure in the answer of a route, and returns the plugin that it is of.

        Args:
            error: what was raised.
            owner: the plugin of the route, or the kernel.
            place: template of the route.
        """
        plugin_id = self._plugin_of(error, owner)
        key = plugin_id, place
        if key not in self._times and len(self._times) >= _MOST_KEPT:
            oldest = min(self._times, key=lambda one: self._times[one][-1])
            del self._times[oldest], self._last[oldest]
        self._times.setdefault(key, deque(maxlen=_REPEATED)).append(time.monotonic())
        self._last[key] = describe_failure(error)
        return plugin_id

    def findings(self) -> Iterator[Finding]:
        """Yields what has failed several times in the last ten minutes."""
        since = time.monotonic() - _WITHIN_SECONDS
        for (plugin_id, what), times in list(self._times.items()):
            if len(times) == _REPEATED and times[0] >= since:
                yield Finding(
                    "plugin.failing",
                    "server" if plugin_id == KERNEL else plugin_id,
                    "The server fails again and again to answer."
                    if plugin_id == KERNEL
                    else f"Code of the plugin {plugin_id!r} fails again and again in requests.",
                    "Look at the log of the server for the trace. Ends ten minutes after the last failures.",
                    subject=what,
                    detail=f"{what}: {self._last[plugin_id, what]}",
                )

    def _plugin_of(self, error: BaseException, owner: str) -> str:
        """Returns the plugin whose code raised an error, or gave what is wrong."""
        if isinstance(error, SvcError) and "extension" in error.details:
            return self._packages.get(error.details["extension"], owner)
        found, trace = owner, error.__traceback__
        while trace is not None:
            module = str(trace.tb_frame.f_globals.get("__name__", ""))
            found = self._packages.get(module.partition(".")[0], found)
            trace = trace.tb_next
        return found
