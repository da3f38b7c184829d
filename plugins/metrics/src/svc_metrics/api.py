"""How other plugins say how they are: the public module of the driver.

What is counted is a ``Counter``, ``Level`` or ``Histogram`` of ``svc.plugin``, wherever it happens. What is
so and so much now is a gauge: a source is asked for it when somebody reads the metrics.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from svc.plugin import Family, NamedRegistry, hookspec

if TYPE_CHECKING:
    from svc.plugin import PluginContext
    from svc_metrics.counted import Counted

__all__ = ["FAMILIES", "GAUGE_SOURCES", "Counted", "Gauge", "GaugeSource"]

_NAME = re.compile(r"[a-z][a-z0-9]*([._-][a-z0-9]+)*", re.ASCII)


class Gauge(msgspec.Struct, frozen=True):
    """One value of now.

    Attributes:
        name: as Prometheus wants it, with its unit: ``svc_sink_commits_behind``.
        text: one sentence: what it is.
        value: how much.
        labels: names and values; all gauges of one name have the same names.
    """

    name: str
    text: str
    value: float
    labels: Mapping[str, str] = {}


class GaugeSource(ABC):
    """Knows gauges. Stateless: one object serves all databases of a process.

    Attributes:
        name: lower-case words, mostly the id of the plugin.
    """

    name: ClassVar[str]

    @abstractmethod
    def gauges(self, context: PluginContext) -> Iterable[Gauge]:
        """Yields gauges, some hundreds at most. Called in a thread of a worker; reads little, never waits.

        An exception costs the gauges of this source, and is logged.
        """

    def statistics(self, context: PluginContext, counted: Counted) -> Mapping[str, Any]:
        """Returns what the source adds to ``/system/stats`` and the event ``metrics``; nothing by default.

        Called as ``gauges`` is.

        Args:
            context: the plugin's.
            counted: what all processes have counted.

        Returns:
            Sections of the statistics with their members, as ``{"counts": {"snapshots": 3}}``; objects in
            objects are joined with those of others.
        """
        return {}


def check_gauge_source(thing: object) -> str | None:
    """Returns what is wrong with a source; None when it is fine."""
    if not isinstance(thing, GaugeSource):
        return "must be an instance of svc_metrics.api.GaugeSource"
    name = getattr(thing, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"the name {name!r} is not lower-case words"
    return None


@hookspec
def svc_register_gauge_sources(gauge_sources: NamedRegistry[GaugeSource]) -> None:
    """Adds sources of gauges: ``gauge_sources.add(MyGauges())``.

    Called at boot, in the processes that serve databases.
    """


GAUGE_SOURCES: Family[GaugeSource] = Family("gauge_sources", "source of gauges", check_gauge_source)
FAMILIES = (GAUGE_SOURCES,)


def __getattr__(name: str) -> Any:
    # What reads is loaded when it is used: sources need none of it at boot.
    if name == "Counted":
        from svc_metrics.counted import Counted

        return Counted
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
