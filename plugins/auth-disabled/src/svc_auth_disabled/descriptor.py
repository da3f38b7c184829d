"""What the plugin ``auth.disabled`` says about itself; imported at every start, so it imports little."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="auth.disabled",
    version="0.1.0",
    summary="No authentication: every request is root's; listens on loopback only",
    api=(1, 1),
    adds={
        "auth_modes": ("svc_auth_disabled.mode:DisabledAuthMode",),
    },
    auth_modes=("disabled", "false"),
)
