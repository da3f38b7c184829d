"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="auth.magic-link",
    version="0.1.0",
    summary="Sign-in by a link that is mailed",
    api=(1, 1),
    implementation="svc_auth_magic_link.plugin",
    needs=("auth.self", "users"),
)
