"""The plugin keeps the contract of all plugins."""

from __future__ import annotations

from svc_testing import PluginContract


class TestPlugin(PluginContract):
    plugin_id = "auth.magic-link"
