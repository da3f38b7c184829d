"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, PluginDescriptor, StartOption, SyncRule, SystemPath
from svc_auth_self.configuration import AuthSelfConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="auth.self",
    version="0.1.0",
    summary="Sign-in with API keys and tokens that the database keeps",
    api=(1, 1),
    configuration=AuthSelfConfiguration,
    implementation="svc_auth_self.plugin",
    command_group="People",
    operations=("svc_auth_self.operations",),
    needs=("users",),
    extends=("portal:portal_pages", "portal:sign_ins"),
    options=(StartOption("jwt-expiry", "Seconds for which an access token is good.", metavar="SECONDS"),),
    auth_modes=("self-contained", "self"),
    response_headers=("X-Svc-Next-Key",),
    system_paths=(
        SystemPath("api-keys", BackupRule.SECRET, sync=SyncRule.REMOVAL_WINS),
        SystemPath("api-keys-of", BackupRule.SECRET, sync=SyncRule.REMOVAL_WINS),
        SystemPath("auth-secrets", BackupRule.SECRET),
        # Without it a key would be good only where it was made.
        SystemPath("auth-secrets/hash-key", BackupRule.SECRET, sync=SyncRule.LAST_WRITER),
        SystemPath("ended-sign-ins", BackupRule.SECRET, sync=SyncRule.LAST_WRITER),
        SystemPath("refresh-tokens", BackupRule.SECRET),
        SystemPath("signing-keys", BackupRule.SECRET),
    ),
)
