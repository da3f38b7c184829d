"""What the plugin says about itself. svc reads it at every start, so it imports no more of the plugin."""

from __future__ import annotations

from svc.plugin import PluginDescriptor
from svc_auth_oidc.configuration import OidcSettings

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="auth.oidc",
    version="0.1.0",
    summary="Takes the bearer tokens of an OpenID Connect issuer",
    api=(1, 1),
    adds={
        "auth_modes": ("svc_auth_oidc.mode:OidcAuthMode",),
        "health_checks": ("svc_auth_oidc.health:IssuerCheck",),
    },
    configuration=OidcSettings,
    needs=("users",),
    auth_modes=("oidc",),
)
