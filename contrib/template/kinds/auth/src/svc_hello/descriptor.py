"""What the plugin says about itself. svc reads it at every start, so it imports no more of the plugin."""

from __future__ import annotations

import msgspec

from svc.plugin import PluginDescriptor, Secret

__all__ = ["PLUGIN", "HelloSettings"]


class HelloSettings(msgspec.Struct, frozen=True):
    """The settings of the plugin.

    Attributes:
        word: who sends it as a bearer token is root; empty: nobody is.
    """

    word: Secret = Secret("")


PLUGIN = PluginDescriptor(
    id="contrib.hello",
    version="0.1.0",
    summary="Lets in who knows a word",
    api=(1, 1),
    adds={
        "auth_modes": ("svc_hello.mode:WordAuthMode",),
    },
    configuration=HelloSettings,
    auth_modes=("hello",),
)
