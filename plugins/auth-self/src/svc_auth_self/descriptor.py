"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, CommandHome, PluginDescriptor, StartOption, SyncRule, SystemPath
from svc_auth_self.configuration import AuthSelfConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="auth.self",
    version="0.1.0",
    summary="Sign-in with API keys and tokens that the database keeps",
    api=(1, 1),
    configuration=AuthSelfConfiguration,
    implementation="svc_auth_self.plugin",
    adds={
        "auth_modes": ("svc_auth_self.mode:SelfContainedAuthMode",),
        "health_checks": ("svc_auth_self.health:RootKeyCheck",),
        "portal:portal_pages": (
            "svc_auth_self.portal.keys:KeysPage",
            "svc_auth_self.portal.sign_ins:SignInsPage",
        ),
        "portal:sign_ins": ("svc_auth_self.portal.sign_in:KeySignIn",),
        "jobs": (
            "svc_auth_self.jobs:SigningKeyJob",
            "svc_auth_self.jobs:PruneJob",
        ),
    },
    command_group="People",
    operations=("svc_auth_self.operations",),
    needs=("users",),
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
    commands=(
        CommandHome("key", "svc_auth_self.commands.key:key", "Makes, lists and revokes API keys."),
        CommandHome(
            "login",
            "svc_auth_self.commands.session:login",
            "Exchanges an API key for tokens, which later commands with this URL use.",
        ),
        CommandHome(
            "logout",
            "svc_auth_self.commands.session:logout",
            "Ends the sign-in at a server and forgets its tokens.",
        ),
        CommandHome(
            "reset-root-key",
            "svc_auth_self.commands.root_key:reset",
            "Makes a new root key and prints it; every other key of root ends, with its tokens.",
        ),
        CommandHome(
            "whoami",
            "svc_auth_self.commands.session:whoami",
            "Says as whom a server knows you, and what narrows that.",
        ),
    ),
)
