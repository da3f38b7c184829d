"""The plugin, by the contracts of svc. ``svc_hello.testing`` is the contract of those who add styles."""

from __future__ import annotations

from svc_hello.descriptor import PLUGIN
from svc_hello.operations import greet_in_style

from svc.errors import InvalidInput
from svc_testing import OperationsContract, PluginContract


class TestPlugin(PluginContract):
    plugin_id = PLUGIN.id


class TestOperations(OperationsContract):
    plugin_id = PLUGIN.id

    def story(self, call):
        assert call(greet_in_style, "plain", "Ann").greeting == "Hello, Ann!"
        call.refused(InvalidInput, greet_in_style, "loud", "Ann")
