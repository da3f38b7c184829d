"""The plugin keeps the contract of all plugins, and its pages say what the code does."""

from __future__ import annotations

from pathlib import Path

from svc_events_webhook.configuration import WebhookConfiguration
from svc_events_webhook.models import Delivery, NewWebhook, ShownWebhook

from svc_testing import PluginContract, PluginPagesContract

DOCS = Path(__file__).parents[3] / "docs"


class TestWebhookPlugin(PluginContract):
    plugin_id = "events.webhook"


class TestPages(PluginPagesContract):
    docs = DOCS
    plugin_id = "events.webhook"
    needs = ("events", "users")
    plugin_page = "plugins/events-webhook.md"
    http_page = "http/webhooks.md"
    bodies = (ShownWebhook, NewWebhook, Delivery)
    configuration = WebhookConfiguration
