"""The settings of the plugin."""

from __future__ import annotations

from typing import Annotated

import msgspec

from svc.plugin import Secret

__all__ = ["MetricsConfiguration"]


class MetricsConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may read metrics, and how often the event comes.

    Attributes:
        scrape_token: bearer token of whoever may read ``/system/metrics/scrape``; empty: nobody.
        event_seconds: time between two events ``metrics`` of a stream.
    """

    scrape_token: Secret = Secret()
    event_seconds: Annotated[int, msgspec.Meta(ge=1, le=3600)] = 15
