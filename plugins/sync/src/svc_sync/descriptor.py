"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, CommandHome, PluginDescriptor, StartOption, SystemPath
from svc_sync.configuration import SyncConfiguration, check_address, check_addresses

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="sync",
    version="0.1.0",
    summary="A cluster of databases that hold the same files",
    api=(1, 1),
    configuration=SyncConfiguration,
    implementation="svc_sync.plugin",
    adds={
        "jobs": ("svc_sync.job:SyncJob",),
        "health_checks": ("svc_sync.health:SyncHealth",),
        "metrics:gauge_sources": ("svc_sync.gauges:SyncGauges",),
        "files:file_mounts": ("svc_sync.mount:ConflictsMount",),
        "tasks:node_choices": ("svc_sync.choosing:LowestNode",),
        "portal:portal_pages": ("svc_sync.portal.pages:ClusterPage",),
        "portal:state_cards": ("svc_sync.portal.pages:PeersCard",),
    },
    command_group="Clusters",
    operations=("svc_sync.operations",),
    families="svc_sync.api",
    needs=("auth.self", "events", "users"),
    is_of_node=True,
    options=(
        StartOption(
            "join",
            "A member of the cluster to join, if the node is in none yet.",
            metavar="URL",
            check=check_address,
        ),
        StartOption(
            "peers",
            "Nodes of the cluster to pull from, with commas between.",
            metavar="URLS",
            check=check_addresses,
        ),
        StartOption("join-token", "Root key of that member.", metavar="KEY", secret=True),
        StartOption("join-merge", "Add what the node holds to what the cluster does when it joins."),
        StartOption(
            "cluster-address", "URL at which other nodes of the cluster reach this one.", metavar="URL"
        ),
        StartOption("cluster-label", "What people call this node."),
    ),
    system_paths=(
        SystemPath("sync", BackupRule.SKIP),
        SystemPath("sync/node", BackupRule.SECRET),
        SystemPath("sync/stamped", BackupRule.SECRET),
        SystemPath("sync/copied", BackupRule.SECRET),
        SystemPath("sync/registers", BackupRule.SECRET),
        SystemPath("sync/returning", BackupRule.SECRET),
        SystemPath("refs/sync", BackupRule.SKIP),
        SystemPath("refs/conflicts", BackupRule.SKIP),
    ),
    commands=(
        CommandHome(
            "sync", "svc_sync.commands.sync:sync", "Shows the cluster; adds, removes and joins nodes."
        ),
        CommandHome(
            "conflicts",
            "svc_sync.commands.conflicts:conflicts",
            "Lists, shows and resolves conflicts of nodes.",
        ),
    ),
)
