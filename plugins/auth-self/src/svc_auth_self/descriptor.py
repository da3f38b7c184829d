"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, PluginDescriptor, StartOption, SystemPath
from svc_auth_self.configuration import AuthSelfConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="auth.self",
    version="0.1.0",
    summary="Sign-in with API keys and tokens that the database keeps",
    api=(1, 1),
    configuration=AuthSelfConfiguration,
    implementation="svc_auth_self.plugin",
    operations=("svc_auth_self.operations",),
    needs=("users",),
    options=(StartOption("jwt-expiry", "Seconds for which an access token is good.", metavar="SECONDS"),),
    auth_modes=("self-contained", "self"),
    response_headers=("X-Svc-Next-Key",),
    system_paths=(
        SystemPath("api-keys", BackupRule.SECRET),
        SystemPath("api-keys-of", BackupRule.SECRET),
        SystemPath("auth-secrets", BackupRule.SECRET),
        SystemPath("ended-sign-ins", BackupRule.SECRET),
        SystemPath("refresh-tokens", BackupRule.SECRET),
        SystemPath("signing-keys", BackupRule.SECRET),
    ),
)
