"""The hooks of the plugin: its own pages and cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import NamedRegistry
    from svc_portal.api import PortalPage, StateCard

__all__ = ["svc_register_portal_pages", "svc_register_state_cards"]


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds the pages on the state of the server and on its plugins."""
    from svc_portal.plugin_pages import PluginPage, PluginsPage
    from svc_portal.state import StatePage

    portal_pages.add(StatePage())
    portal_pages.add(PluginsPage())
    portal_pages.add(PluginPage())


@hookimpl
def svc_register_state_cards(state_cards: NamedRegistry[StateCard]) -> None:
    """Adds what is wrong with the server, and what it is."""
    from svc_portal.state import FindingsCard, ServerCard

    state_cards.add(FindingsCard())
    state_cards.add(ServerCard())
