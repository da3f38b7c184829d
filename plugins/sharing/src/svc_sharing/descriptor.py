"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="sharing",
    version="0.1.0",
    summary="Shares with users and groups, and links that open without an account",
    api=(1, 1),
    implementation="svc_sharing.plugin",
    needs=("auth.self", "users"),
)
