"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import CommandHome, PluginDescriptor
from svc_query.configuration import QueryConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="query",
    version="0.1.0",
    summary="Queries and search over indexed files",
    api=(1, 1),
    configuration=QueryConfiguration,
    adds={
        "views": ("svc_query.indexing.view:IndexView",),
        "content_checks": ("svc_query.indexing.checking:IndexesCheck",),
        "health_checks": ("svc_query.health:IndexHealth",),
        "metrics:gauge_sources": ("svc_query.gauges:IndexGauges",),
        "query:query_operators": ("svc_query.built_in_operators:BUILT_IN_OPERATORS",),
        "events:event_types": ("svc_query.event_types:IndexEvents",),
        "portal:portal_pages": (
            "svc_query.portal.search:SearchPage",
            "svc_query.portal.building:BuilderPage",
            "svc_query.portal.indexes:IndexesPage",
        ),
        "portal:previews": (
            "svc_query.portal.saved:SavedSearchPreview",
            "svc_query.portal.documents:DocumentPreview",
        ),
    },
    command_group="Search",
    operations=("svc_query.operations",),
    families="svc_query.api",
    commands=(
        CommandHome("query", "svc_query.commands:query", "Finds files by the values of their fields."),
        CommandHome("search", "svc_query.commands:search", "Finds files by words, the best first."),
        CommandHome("index", "svc_query.commands:index", "Shows, makes anew and proposes indexes."),
    ),
)
