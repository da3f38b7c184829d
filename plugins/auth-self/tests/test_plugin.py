"""The plugin as a whole: its descriptor, and that it starts, stops and leaves nothing undeclared."""

from __future__ import annotations

from svc_testing import PluginContract


class TestPlugin(PluginContract):
    plugin_id = "auth.self"
