"""The plugin keeps the contract of all plugins; that of task types is run by the page about writing one."""

from __future__ import annotations

from svc_testing import PluginContract


class TestTasksPlugin(PluginContract):
    plugin_id = "tasks"
