"""The hooks of the plugin: its jobs, commands and pages, and the checks of schedules and of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import EventType
    from svc_metrics.api import GaugeSource
    from svc_portal.api import PortalPage, StateCard

    from svc.plugin import (
        ContentCheck,
        HealthCheck,
        JobRegistry,
        NamedRegistry,
        PluginContext,
    )

__all__ = [
    "svc_background",
    "svc_enable",
    "svc_register_content_checks",
    "svc_register_event_types",
    "svc_register_gauge_sources",
    "svc_register_health_checks",
    "svc_register_portal_pages",
    "svc_register_state_cards",
]


@hookimpl
def svc_enable(context: PluginContext) -> None:
    """Refuses a time zone that there is none of."""
    from svc_tasks.schedules.times import time_zone

    if context.configuration is not None:
        time_zone(context.configuration.timezone)


@hookimpl
def svc_background(context: PluginContext, jobs: JobRegistry) -> None:
    """Adds the runner of tasks, and the scheduler."""
    from svc_tasks.running.job import TaskRunner
    from svc_tasks.schedules.job import SchedulerJob

    del context
    jobs.add(TaskRunner())
    jobs.add(SchedulerJob())


@hookimpl
def svc_register_content_checks(content_checks: NamedRegistry[ContentCheck]) -> None:
    """Adds the check of ``/.config/cron.json``."""
    from svc_tasks.schedules.checking import CronCheck

    content_checks.add(CronCheck())


@hookimpl
def svc_register_health_checks(health_checks: NamedRegistry[HealthCheck]) -> None:
    """Adds the check of tasks."""
    from svc_tasks.health import TaskHealth

    health_checks.add(TaskHealth())


@hookimpl
def svc_register_gauge_sources(gauge_sources: NamedRegistry[GaugeSource]) -> None:
    """Adds how many tasks wait and run."""
    from svc_tasks.gauges import TaskGauges

    gauge_sources.add(TaskGauges())


@hookimpl
def svc_register_event_types(event_types: NamedRegistry[EventType]) -> None:
    """Adds the events of tasks."""
    from svc_tasks.event_types import TaskEvents

    event_types.add(TaskEvents())


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds the pages of tasks and schedules."""
    from svc_tasks.portal.schedules import SchedulesPage
    from svc_tasks.portal.tasks import NewTaskPage, TaskPage, TasksPage

    for page in (TasksPage, TaskPage, NewTaskPage, SchedulesPage):
        portal_pages.add(page())


@hookimpl
def svc_register_state_cards(state_cards: NamedRegistry[StateCard]) -> None:
    """Adds what waits, runs and has failed."""
    from svc_tasks.portal.card import TasksCard

    state_cards.add(TasksCard())
