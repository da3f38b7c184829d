"""The settings of the plugin."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["SyncHttpConfiguration"]


class SyncHttpConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How nodes are reached.

    Attributes:
        cluster_tls: whether ``http://`` addresses that are not on this machine are refused.
        cluster_tls_cert: PEM file of the certificate that this node shows to others, with its chain.
        cluster_tls_key: PEM file of its key.
        ca_file: PEM file of the authorities to trust beside those of the system.
        timeout_seconds: for which a node may be silent.
    """

    cluster_tls: bool = True
    cluster_tls_cert: str | None = None
    cluster_tls_key: str | None = None
    ca_file: str | None = None
    timeout_seconds: Annotated[float, msgspec.Meta(ge=1, le=600)] = 30.0

    def __post_init__(self) -> None:
        if (self.cluster_tls_cert is None) != (self.cluster_tls_key is None):
            raise ValueError("cluster_tls_cert and cluster_tls_key go together")
