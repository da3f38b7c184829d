"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor
from svc_metrics.configuration import MetricsConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="metrics",
    version="0.1.0",
    summary="What a server has done and how it is, for Prometheus",
    api=(1, 1),
    configuration=MetricsConfiguration,
    implementation="svc_metrics.plugin",
    operations=("svc_metrics.operations",),
    families="svc_metrics.api",
)
