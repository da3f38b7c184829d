"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="users",
    version="0.1.0",
    summary="Users, groups and grants: who may do what",
    api=(1, 1),
    implementation="svc_users.plugin",
)
