"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, CommandHome, PluginDescriptor, SyncRule, SystemPath
from svc_sharing.configuration import SharingConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="sharing",
    version="0.1.0",
    summary="Shares with users and groups, and links that open without an account",
    api=(1, 1),
    configuration=SharingConfiguration,
    adds={
        "jobs": ("svc_sharing.pruning:PruneLinksJob",),
        "events:event_types": ("svc_sharing.event_types:ShareEvents",),
        "portal:portal_pages": (
            "svc_sharing.portal.pages:SharedPage",
            "svc_sharing.portal.pages:SharingPage",
            "svc_sharing.portal.pages:LinksPage",
        ),
        "portal:entry_actions": ("svc_sharing.portal.pages:ShareAction",),
    },
    command_group="People",
    operations=("svc_sharing.operations",),
    needs=("auth.self", "users"),
    # A link is nothing without its key, which no backup holds.
    system_paths=(SystemPath("share-links", BackupRule.SKIP, sync=SyncRule.REMOVAL_WINS),),
    commands=(
        CommandHome(
            "share", "svc_sharing.commands.share:share", "Shares files with users and groups, and by links."
        ),
    ),
)
