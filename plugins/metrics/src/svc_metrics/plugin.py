"""The hooks of the plugin: its commands, its pulse, its page and the job that takes samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import Pulse
    from svc_portal.api import PortalPage, StateCard

    from svc.plugin import CommandRegistry, JobRegistry, NamedRegistry

__all__ = [
    "COMMANDS",
    "svc_background",
    "svc_register_commands",
    "svc_register_portal_pages",
    "svc_register_pulses",
    "svc_register_state_cards",
]

COMMANDS = {
    "stats": ("svc_metrics.commands:stats", "Shows what a database holds and takes, and what a server does."),
    "top": ("svc_metrics.commands:top", "Shows what a server does, live."),
}
"""Where each command is, and its line in the help."""


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
def svc_register_commands(commands: CommandRegistry) -> None:
    """Adds ``svc stats`` and ``svc top``."""
    from svc.plugin import LazyCommand

    for name, (home, summary) in COMMANDS.items():
        commands.add(LazyCommand(name, home, summary))


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
