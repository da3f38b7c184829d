"""The settings of the plugin."""

from __future__ import annotations

import msgspec

from svc.plugin import Secret

__all__ = ["MetricsConfiguration"]


class MetricsConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may read metrics.

    Attributes:
        scrape_token: bearer token of whoever may read ``/system/metrics/scrape``; empty: nobody.
    """

    scrape_token: Secret = Secret()
