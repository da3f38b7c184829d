"""What the plugin says about itself. svc reads it at every start, so it imports no more of the plugin."""

from __future__ import annotations

import msgspec

from svc.plugin import CommandHome, PluginDescriptor

__all__ = ["PLUGIN", "HelloSettings"]


class HelloSettings(msgspec.Struct, frozen=True):
    """The settings of the plugin, one set for each database that enables it.

    Attributes:
        greeting: the word before the name.
    """

    greeting: str = "Hello"


PLUGIN = PluginDescriptor(
    id="contrib.hello",
    version="0.1.0",
    summary="Says hello over HTTP and at the shell",
    api=(1, 1),
    adds={
        "views": ("svc_hello.activity:ActivityView",),
    },
    operations=("svc_hello.operations",),
    commands=(
        CommandHome("hello", "svc_hello.commands:hello", "Says hello to NAME, in the words of a database."),
    ),
    configuration=HelloSettings,
)
