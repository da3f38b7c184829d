"""The plugin, by the contracts of svc and of the portal."""

from __future__ import annotations

import pytest
from svc_hello.descriptor import PLUGIN
from svc_hello.page import HelloPage
from svc_portal.testing import PortalPageContract

from svc_testing import PluginContract


class TestPlugin(PluginContract):
    plugin_id = PLUGIN.id


class TestPage(PortalPageContract):
    plugin_id = PLUGIN.id
    urls = ("hello",)
    forms = (("hello", "action=greet&whom=Ann"),)
    is_for_everyone = True

    @pytest.fixture
    def extension(self):
        return HelloPage()
