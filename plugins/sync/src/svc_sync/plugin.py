"""The hooks of the plugin: its job, its commands, its pages, what it says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_metrics.api import GaugeSource
    from svc_portal.api import PortalPage, StateCard
    from svc_tasks.api import NodeChoice

    from svc.plugin import HealthCheck, JobRegistry, NamedRegistry, PluginContext
    from svc_files.api import Mount

__all__ = [
    "svc_background",
    "svc_register_file_mounts",
    "svc_register_gauge_sources",
    "svc_register_health_checks",
    "svc_register_node_choices",
    "svc_register_portal_pages",
    "svc_register_state_cards",
    "svc_start",
]


@hookimpl
def svc_start(context: PluginContext) -> None:
    """Makes the database a node, and says so to who tells of events."""
    from svc_events.api import name_node

    from svc_sync.exchange.records import ensure_node, node_id_of

    if not context.database.read_only:
        ensure_node(context.database)
        name_node(context.database, node_id_of)


@hookimpl
def svc_background(context: PluginContext, jobs: JobRegistry) -> None:
    """Adds the job that pulls from peers."""
    from svc_sync.job import SyncJob

    del context
    jobs.add(SyncJob())


@hookimpl
def svc_register_health_checks(health_checks: NamedRegistry[HealthCheck]) -> None:
    """Adds the check of peers."""
    from svc_sync.health import SyncHealth

    health_checks.add(SyncHealth())


@hookimpl
def svc_register_gauge_sources(gauge_sources: NamedRegistry[GaugeSource]) -> None:
    """Adds how it goes with peers."""
    from svc_sync.gauges import SyncGauges

    gauge_sources.add(SyncGauges())


@hookimpl
def svc_register_file_mounts(file_mounts: NamedRegistry[Mount]) -> None:
    """Adds ``/.conflicts``."""
    from svc_sync.mount import ConflictsMount

    file_mounts.add(ConflictsMount())


@hookimpl
def svc_register_node_choices(node_choices: NamedRegistry[NodeChoice]) -> None:
    """Adds which node runs schedules that one of them runs."""
    from svc_sync.choosing import LowestNode

    node_choices.add(LowestNode())


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds the page of the cluster and its conflicts."""
    from svc_sync.portal.pages import ClusterPage

    portal_pages.add(ClusterPage())


@hookimpl
def svc_register_state_cards(state_cards: NamedRegistry[StateCard]) -> None:
    """Adds how it goes with peers."""
    from svc_sync.portal.pages import PeersCard

    state_cards.add(PeersCard())
