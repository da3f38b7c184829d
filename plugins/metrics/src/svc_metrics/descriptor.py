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
    adds={
        "jobs": ("svc_metrics.rates:SamplingJob",),
        "events:pulses": ("svc_metrics.pulse:MetricsPulse",),
        "portal:portal_pages": ("svc_metrics.portal.pages:MetricsPage",),
        "portal:state_cards": ("svc_metrics.portal.pages:MetricsCard",),
    },
    command_group="Running it",
    operations=("svc_metrics.operations",),
    families="svc_metrics.api",
    commands=(
        CommandHome(
            "stats",
            "svc_metrics.commands:stats",
            "Shows what a database holds and takes, and what a server does.",
        ),
        CommandHome("top", "svc_metrics.commands:top", "Shows what a server does, live."),
    ),
)
