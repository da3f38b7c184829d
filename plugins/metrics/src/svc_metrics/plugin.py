"""The hooks of the plugin: its commands, its pulse, its page and the job that takes samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import Pulse
    from svc_portal.api import PortalPage, StateCard

    from svc.plugin import JobRegistry, NamedRegistry

__all__ = [
    "svc_background",
    "svc_register_portal_pages",
    "svc_register_pulses",
    "svc_register_state_cards",
]


@hookimpl
def svc_background(jobs: JobRegistry) -> None:
    """Adds the job that takes samples of what is counted."""
    from svc_metrics.rates import SamplingJob

    jobs.add(SamplingJob())


@hookimpl
def svc_register_pulses(pulses: NamedRegistry[Pulse]) -> None:
    """Adds ``metrics``."""
    from svc_metrics.pulse import MetricsPulse

    pulses.add(MetricsPulse())


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds the page of metrics."""
    from svc_metrics.portal.pages import MetricsPage

    portal_pages.add(MetricsPage())


@hookimpl
def svc_register_state_cards(state_cards: NamedRegistry[StateCard]) -> None:
    """Adds what the server does just now."""
    from svc_metrics.portal.pages import MetricsCard

    state_cards.add(MetricsCard())
