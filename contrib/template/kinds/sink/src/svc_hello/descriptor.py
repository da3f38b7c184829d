"""What the plugin says about itself. svc reads it at every start, so it imports no more of the plugin."""

from __future__ import annotations

import msgspec

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN", "HelloSettings"]


class HelloSettings(msgspec.Struct, frozen=True):
    """The settings of the plugin.

    Attributes:
        url: where events are posted, one at a time; nowhere while it is empty.
    """

    url: str = ""


PLUGIN = PluginDescriptor(
    id="contrib.hello",
    version="0.1.0",
    summary="Posts events to a URL",
    api=(1, 1),
    adds={
        "events:event_sinks": ("svc_hello.sink:PostingSink",),
    },
    configuration=HelloSettings,
    needs=("events",),
)
