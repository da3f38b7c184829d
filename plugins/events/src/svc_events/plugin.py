"""The hooks of the plugin: its event types, its command, the feed of each database, and the job of sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_metrics.api import GaugeSource

    from svc.plugin import HealthCheck, JobRegistry, NamedRegistry, PluginContext
    from svc_events.api import EventType

__all__ = [
    "svc_background",
    "svc_register_event_types",
    "svc_register_gauge_sources",
    "svc_register_health_checks",
    "svc_start",
    "svc_stop",
]


@hookimpl
def svc_start(context: PluginContext) -> None:
    """Lets delivery plugins read the events of the database."""
    from svc_events.feeds import start_feed

    start_feed(context)


@hookimpl
def svc_stop(context: PluginContext) -> None:
    """Ends what reads them."""
    from svc_events.feeds import stop_feed

    stop_feed(context)


@hookimpl
def svc_background(context: PluginContext, jobs: JobRegistry) -> None:
    """Adds the job that delivers to event sinks."""
    from svc_events.sinks.job import SinkJob

    del context
    jobs.add(SinkJob())


@hookimpl
def svc_register_health_checks(health_checks: NamedRegistry[HealthCheck]) -> None:
    """Adds the check of event sinks."""
    from svc_events.sinks.states import SinkHealth

    health_checks.add(SinkHealth())


@hookimpl
def svc_register_gauge_sources(gauge_sources: NamedRegistry[GaugeSource]) -> None:
    """Adds how far event sinks are."""
    from svc_events.sinks.gauges import SinkGauges

    gauge_sources.add(SinkGauges())


@hookimpl
def svc_register_event_types(event_types: NamedRegistry[EventType]) -> None:
    """Adds ``entries_created`` and ``entries_deleted``."""
    from svc_events.entries import EntryEvents

    event_types.add(EntryEvents())
