"""The plugin keeps the contract of all plugins, and its pages say what the code does."""

from __future__ import annotations

from pathlib import Path

from svc_events_sse.configuration import SseConfiguration

from svc_testing import PluginContract, PluginPagesContract


class TestEventStreamsPlugin(PluginContract):
    plugin_id = "events.sse"


class TestPages(PluginPagesContract):
    docs = Path(__file__).parents[3] / "docs"
    plugin_id = "events.sse"
    needs = ("events",)
    plugin_page = "plugins/events-sse.md"
    http_page = "http/events.md"
    configuration = SseConfiguration
