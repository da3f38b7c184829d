"""The hooks of the plugin: its pulse, its page and its card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import Pulse
    from svc_portal.api import PortalPage, StateCard

    from svc.plugin import NamedRegistry

__all__ = ["svc_register_portal_pages", "svc_register_pulses", "svc_register_state_cards"]


@hookimpl
def svc_register_pulses(pulses: NamedRegistry[Pulse]) -> None:
    """Adds ``heartbeat``."""
    from svc_events_sse.heartbeat import Heartbeat

    pulses.add(Heartbeat())


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds the page of events."""
    from svc_events_sse.portal.pages import EventsPage

    portal_pages.add(EventsPage())


@hookimpl
def svc_register_state_cards(state_cards: NamedRegistry[StateCard]) -> None:
    """Adds what happened last."""
    from svc_events_sse.portal.pages import EventsCard

    state_cards.add(EventsCard())
