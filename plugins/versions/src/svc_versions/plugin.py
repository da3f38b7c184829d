"""The hooks of the plugin: its views, its commands, its background job and its part of the portal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import EventType
    from svc_metrics.api import GaugeSource
    from svc_portal.api import PortalPage

    from svc.plugin import JobRegistry, NamedRegistry, View

__all__ = [
    "svc_background",
    "svc_register_event_types",
    "svc_register_gauge_sources",
    "svc_register_portal_pages",
    "svc_register_views",
]


@hookimpl
def svc_register_views(views: NamedRegistry[View]) -> None:
    """Adds the view of HEAD's jumps."""
    from svc_versions.ancestry import JumpsView

    views.add(JumpsView())


@hookimpl
def svc_register_gauge_sources(gauge_sources: NamedRegistry[GaugeSource]) -> None:
    """Adds how many snapshots and forks there are."""
    from svc_versions.gauges import VersionGauges

    gauge_sources.add(VersionGauges())


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds snapshots, forks and merges."""
    from svc_versions.portal.merging import MergePage
    from svc_versions.portal.pages import ForkPage, ForksPage, SnapshotPage, SnapshotsPage

    for page in (SnapshotsPage, SnapshotPage, ForksPage, ForkPage, MergePage):
        portal_pages.add(page())


@hookimpl
def svc_background(jobs: JobRegistry) -> None:
    """Adds the job that deletes snapshots which are too old."""
    from svc_versions.retention import RetentionJob
    from svc_versions.scheduling import ScheduleJob

    jobs.add(RetentionJob())
    jobs.add(ScheduleJob())


@hookimpl
def svc_register_event_types(event_types: NamedRegistry[EventType]) -> None:
    """Adds ``versions_created``."""
    from svc_versions.event_types import VersionEvents

    event_types.add(VersionEvents())
