"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor
from svc_traces_otlp.configuration import TracesConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="traces.otlp",
    version="0.1.0",
    summary="Traces of requests for OpenTelemetry",
    api=(1, 1),
    configuration=TracesConfiguration,
    implementation="svc_traces_otlp.plugin",
    adds={
        "request_observers": ("svc_traces_otlp.observer:OBSERVER",),
    },
)
