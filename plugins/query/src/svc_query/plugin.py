"""The hooks of the plugin: its view, checks, commands and page, and the operators of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import EventType
    from svc_metrics.api import GaugeSource
    from svc_portal.api import PortalPage, Preview

    from svc.plugin import ContentCheck, HealthCheck, NamedRegistry, View
    from svc_query.api import QueryOperator

__all__ = [
    "svc_register_content_checks",
    "svc_register_event_types",
    "svc_register_gauge_sources",
    "svc_register_health_checks",
    "svc_register_portal_pages",
    "svc_register_previews",
    "svc_register_query_operators",
    "svc_register_views",
]


@hookimpl
def svc_register_views(views: NamedRegistry[View]) -> None:
    """Adds the view that keeps the indexes."""
    from svc_query.indexing.view import IndexView

    views.add(IndexView())


@hookimpl
def svc_register_content_checks(content_checks: NamedRegistry[ContentCheck]) -> None:
    """Adds the check of ``indexes.json``."""
    from svc_query.indexing.checking import IndexesCheck

    content_checks.add(IndexesCheck())


@hookimpl
def svc_register_health_checks(health_checks: NamedRegistry[HealthCheck]) -> None:
    """Adds the check of the index."""
    from svc_query.health import IndexHealth

    health_checks.add(IndexHealth())


@hookimpl
def svc_register_gauge_sources(gauge_sources: NamedRegistry[GaugeSource]) -> None:
    """Adds how large the index is."""
    from svc_query.gauges import IndexGauges

    gauge_sources.add(IndexGauges())


@hookimpl
def svc_register_query_operators(query_operators: NamedRegistry[QueryOperator]) -> None:
    """Adds ``exists`` and ``match``."""
    from svc_query.built_in_operators import BUILT_IN_OPERATORS

    for operator in BUILT_IN_OPERATORS:
        query_operators.add(operator)


@hookimpl
def svc_register_event_types(event_types: NamedRegistry[EventType]) -> None:
    """Adds ``indexes_changed``."""
    from svc_query.event_types import IndexEvents

    event_types.add(IndexEvents())


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds the page of searches, the one that builds a query, and the one of what is indexed."""
    from svc_query.portal.building import BuilderPage
    from svc_query.portal.indexes import IndexesPage
    from svc_query.portal.search import SearchPage

    for page in (SearchPage, BuilderPage, IndexesPage):
        portal_pages.add(page())


@hookimpl
def svc_register_previews(previews: NamedRegistry[Preview]) -> None:
    """Adds the previews of what parsers read, and of saved searches."""
    from svc_query.portal.documents import DocumentPreview
    from svc_query.portal.saved import SavedSearchPreview

    previews.add(SavedSearchPreview())
    previews.add(DocumentPreview())
