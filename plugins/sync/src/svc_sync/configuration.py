"""The settings of the plugin."""

from __future__ import annotations

from typing import Annotated

import msgspec

from svc.plugin import Secret

__all__ = ["SyncConfiguration", "check_address", "check_addresses"]


class SyncConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a node takes part in a cluster.

    Attributes:
        cluster_address: URL at which other nodes reach this one; None: they can't, and it only pulls.
        cluster_label: what people call the node.
        join: URL of a member of the cluster to join, if the node is in none yet.
        peers: URLs of nodes of the cluster to pull from, beside those that it knows.
        join_merge: whether what the node holds is added to what the cluster does; else it must be empty.
        join_token: root key of that member; empty where its auth is disabled.
        sync_paths: globs of the paths that the node takes when it joins; none: everything.
        interval_seconds: a peer that says nothing is asked after so many seconds.
        degraded_seconds: a peer that fails for so long makes the node degraded.
        absent_days: a member that is silent for so long and lacks something makes the node degraded.
        takeover_seconds: after so many seconds of silence another node does what one node shall do.
    """

    cluster_address: str | None = None
    cluster_label: str = ""
    join: str | None = None
    peers: tuple[str, ...] = ()
    join_merge: bool = False
    join_token: Secret = Secret()
    sync_paths: tuple[str, ...] = ()
    interval_seconds: Annotated[float, msgspec.Meta(ge=0.5, le=86_400)] = 30.0
    degraded_seconds: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 300.0
    absent_days: Annotated[float, msgspec.Meta(ge=0.01, le=3_650)] = 30.0
    takeover_seconds: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 300.0


def check_address(address: str) -> None:
    """Raises ValueError where a text is no URL; which schemes there are is the transports' affair."""
    scheme, separator, rest = address.partition("://")
    if not (scheme and separator and rest):
        raise ValueError("it must be a URL such as https://node.example.org:6830")


def check_addresses(addresses: tuple[str, ...]) -> None:
    """Raises ValueError where one of them is no URL."""
    for address in addresses:
        check_address(address)
