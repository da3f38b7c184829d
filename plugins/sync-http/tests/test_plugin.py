"""The plugin keeps the contract of all plugins, and its pages say what the code does."""

from __future__ import annotations

from pathlib import Path

from svc_sync_http.configuration import SyncHttpConfiguration

from svc_testing import PluginContract, PluginPagesContract


class TestSyncHttpPlugin(PluginContract):
    plugin_id = "sync.http"


class TestPages(PluginPagesContract):
    docs = Path(__file__).parents[3] / "docs"
    plugin_id = "sync.http"
    needs = ("users", "auth.self", "events", "files", "sync")
    plugin_page = "plugins/sync-http.md"
    http_page = "http/sync-http.md"
    configuration = SyncHttpConfiguration
