"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor, StartOption
from svc_sync_http.configuration import SyncHttpConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="sync.http",
    version="0.1.0",
    is_of_node=True,
    summary="Nodes of a cluster talk over HTTP",
    api=(1, 1),
    configuration=SyncHttpConfiguration,
    adds={
        "sync:sync_transports": ("svc_sync_http.transport:HttpTransport",),
    },
    operations=("svc_sync_http.operations",),
    needs=("auth.self", "events", "sync", "users"),
    options=(
        StartOption(
            "cluster-tls",
            "Whether nodes on other machines are asked over https:// alone.",
            metavar="BOOLEAN",
        ),
        StartOption(
            "cluster-tls-cert", "Certificate that this node shows to others, with its chain.", metavar="FILE"
        ),
        StartOption("cluster-tls-key", "Key of that certificate.", metavar="FILE"),
    ),
)
