"""The settings of the plugin."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["WebhookConfiguration"]


class WebhookConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where webhooks may go to, and their limits.

    Attributes:
        allow_private: whether they may go to addresses that are not the internet's, as loopback ones.
        allow_any_port: whether they may go to other ports than 80 and 443.
        allow_users: whether users may have webhooks of their own, and not root alone.
        maximum_webhooks: most of them in a database.
        maximum_per_user: most of one user.
        timeout_seconds: from the lookup of the name to the answer.
        ca_file: PEM file of the authorities to trust beside those of the system.
        deliveries_kept: how many tries are kept to be looked at, for each webhook.
        deliveries_days: for how many days.
        node_id: of a cluster, the only node that delivers; 0: every node delivers all events.
    """

    allow_private: bool = False
    allow_any_port: bool = False
    allow_users: bool = False
    maximum_webhooks: Annotated[int, msgspec.Meta(ge=1, le=256)] = 100
    maximum_per_user: Annotated[int, msgspec.Meta(ge=1, le=256)] = 10
    timeout_seconds: Annotated[float, msgspec.Meta(ge=0.1, le=120)] = 15.0
    ca_file: str | None = None
    deliveries_kept: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1_000
    deliveries_days: Annotated[int, msgspec.Meta(ge=1, le=365)] = 7
    node_id: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)] = 0
