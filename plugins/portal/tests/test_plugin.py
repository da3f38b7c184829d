"""The plugin keeps the contract of all plugins, and what it adds itself those of its families."""

from __future__ import annotations

import pytest
from svc_portal.plugin_pages import PluginPage, PluginsPage
from svc_portal.state import FindingsCard, ServerCard, StatePage
from svc_portal.testing import PortalPageContract, StateCardContract

from svc_testing import PluginContract


class TestPortalPlugin(PluginContract):
    plugin_id = "portal"


class OfThePortal:
    """What the portal adds to its own families is there whenever they are."""

    plugin_id = "portal"
    test_its_driver_finds_it_while_its_plugin_is_enabled = None

    @pytest.fixture
    def driver_id(self) -> str:
        return "portal"


class TestStatePage(OfThePortal, PortalPageContract):
    urls = ("state",)
    is_for_everyone = True

    @pytest.fixture
    def extension(self) -> StatePage:
        return StatePage()


class TestPluginsPage(OfThePortal, PortalPageContract):
    urls = ("plugins",)

    @pytest.fixture
    def extension(self) -> PluginsPage:
        return PluginsPage()


class TestPluginPage(OfThePortal, PortalPageContract):
    urls = ("plugins/portal", "plugins/metrics")
    forms = (("plugins/metrics", "action=save&setting-event_seconds=30"),)
    beside = ("metrics",)

    @pytest.fixture
    def extension(self) -> PluginPage:
        return PluginPage()


class TestFindingsCard(OfThePortal, StateCardContract):
    @pytest.fixture
    def extension(self) -> FindingsCard:
        return FindingsCard()


class TestServerCard(OfThePortal, StateCardContract):
    @pytest.fixture
    def extension(self) -> ServerCard:
        return ServerCard()
