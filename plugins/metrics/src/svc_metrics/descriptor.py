"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import CommandHome, PluginDescriptor
from svc_metrics.configuration import MetricsConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="metrics",
    version="0.1.0",
    summary="What a server has done and how it is, for Prometheus",
    api=(1, 1),
    configuration=MetricsConfiguration,
    implementation="svc_metrics.plugin",
    command_group="Running it",
    operations=("svc_metrics.operations",),
    families="svc_metrics.api",
    extends=("events:pulses", "portal:portal_pages", "portal:state_cards"),
    commands=(
        CommandHome(
            "stats",
            "svc_metrics.commands:stats",
            "Shows what a database holds and takes, and what a server does.",
        ),
        CommandHome("top", "svc_metrics.commands:top", "Shows what a server does, live."),
    ),
)
