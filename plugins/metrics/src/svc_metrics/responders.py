"""The responders: the text that Prometheus reads."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

import falcon
from prometheus_client.exposition import choose_encoder

from svc.errors import AuthRequired, NotFound
from svc.plugin import SvcRequest, run_blocking
from svc_metrics.configuration import MetricsConfiguration
from svc_metrics.exposition import Snapshot

if TYPE_CHECKING:
    from svc.plugin import PluginContext

__all__ = ["read_metrics_as_root", "scrape"]


def read_metrics_as_root(req: SvcRequest, resp: falcon.Response) -> None:
    """Root's."""
    _answer(req, resp)


def scrape(req: SvcRequest, resp: falcon.Response) -> None:
    """With the token of the settings."""
    settings: MetricsConfiguration = req.context.configuration or MetricsConfiguration()
    token = settings.scrape_token.reveal()
    if not token:
        raise NotFound("There is no such resource.")
    kind, _, given = (req.get_header("Authorization") or "").partition(" ")
    if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
        raise AuthRequired("This takes the scrape_token of the plugin's settings as a bearer token.")
    _answer(req, resp)


def _answer(req: SvcRequest, resp: falcon.Response) -> None:
    plugin: PluginContext | None = req.context.plugin
    assert plugin is not None
    encode, media_type = choose_encoder(req.get_header("Accept") or "")
    resp.data = run_blocking(lambda: encode(Snapshot(plugin)))
    resp.content_type = media_type
    resp.set_header("Cache-Control", "no-store")
