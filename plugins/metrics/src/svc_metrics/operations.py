"""The operations: metrics for root, and for who has the token of the settings, as Prometheus does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import AuthRequired, NotFound
from svc.plugin import Weight, operation, public, requires_root

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["read_metrics_as_root", "scrape"]

_TEXT = "text/plain"


@operation(
    "GET",
    "/system/metrics",
    requires_root,
    weight=Weight.DEAR,
    media_types=(_TEXT, _TEXT),
    responder="svc_metrics.responders:read_metrics_as_root",
)
def read_metrics_as_root(call: Call) -> bytes:
    """Reads all metrics, in the text form of Prometheus, or of OpenMetrics where that is accepted."""


@operation(
    "GET",
    "/system/metrics/scrape",
    public,
    weight=Weight.DEAR,
    errors=(AuthRequired, NotFound),
    media_types=(_TEXT, _TEXT),
    responder="svc_metrics.responders:scrape",
)
def scrape(call: Call) -> bytes:
    """Reads the same with the bearer token ``scrape_token`` of the settings, which never expires."""
