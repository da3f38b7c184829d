"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import CommandHome, PluginDescriptor
from svc_history.configuration import HistoryConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="history",
    version="0.1.0",
    summary="Histories, the log, comparisons and blame",
    api=(1, 1),
    configuration=HistoryConfiguration,
    adds={
        "views": ("svc_history.view:HistoryView",),
        "portal:portal_pages": (
            "svc_history.portal.history:HistoryPage",
            "svc_history.portal.comparison:ComparePage",
            "svc_history.portal.blame:BlamePage",
            "svc_history.portal.log:LogPage",
            "svc_history.portal.log:CommitPage",
        ),
        "portal:entry_actions": (
            "svc_history.portal.actions:HistoryAction",
            "svc_history.portal.actions:BlameAction",
        ),
    },
    command_group="Versions",
    operations=("svc_history.operations",),
    needs=("versions",),
    commands=(
        CommandHome("log", "svc_history.commands:log", "Lists commits, of everything or of a path."),
        CommandHome("show", "svc_history.commands:show", "Shows one commit and what it changed."),
        CommandHome("history", "svc_history.commands:history", "Shows what became of a file or directory."),
        CommandHome("blame", "svc_history.commands:blame", "Shows which commit each line comes from."),
    ),
)
