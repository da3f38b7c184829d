"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="auth.self",
    version="0.1.0",
    summary="Sign-in with API keys and tokens that the database keeps",
    api=(1, 1),
    implementation="svc_auth_self.plugin",
    needs=("users",),
)
