"""The plugin keeps the contract of all plugins, and its pages say what the code does."""

from __future__ import annotations

from pathlib import Path

from svc_testing import PluginContract, PluginPagesContract

DOCS = Path(__file__).parents[3] / "docs"


class TestDocsPlugin(PluginContract):
    plugin_id = "docs"


class TestPages(PluginPagesContract):
    docs = DOCS
    plugin_id = "docs"
    plugin_page = "plugins/docs.md"
    http_page = "http/docs.md"
