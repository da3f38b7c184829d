"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor
from svc_history.configuration import HistoryConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="history",
    version="0.1.0",
    summary="Histories, the log, comparisons and blame",
    api=(1, 1),
    configuration=HistoryConfiguration,
    implementation="svc_history.plugin",
    command_group="Versions",
    operations=("svc_history.operations",),
    extends=("portal:portal_pages", "portal:entry_actions"),
    needs=("versions",),
)
