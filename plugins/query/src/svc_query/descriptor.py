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
    implementation="svc_query.plugin",
    command_group="Search",
    operations=("svc_query.operations",),
    extends=("events:event_types", "metrics:gauge_sources", "portal:portal_pages", "portal:previews"),
    families="svc_query.api",
    commands=(
        CommandHome("query", "svc_query.commands:query", "Finds files by the values of their fields."),
        CommandHome("search", "svc_query.commands:search", "Finds files by words, the best first."),
        CommandHome("index", "svc_query.commands:index", "Shows, makes anew and proposes indexes."),
    ),
)
