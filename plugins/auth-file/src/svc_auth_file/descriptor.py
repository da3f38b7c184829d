"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import CommandHome, PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="auth.file",
    version="0.1.0",
    summary="Sign-in of the users that a file names",
    api=(1, 1),
    implementation="svc_auth_file.plugin",
    adds={
        "auth_modes": ("svc_auth_file.mode:FileAuthMode",),
        "health_checks": ("svc_auth_file.health:UsersFileCheck",),
    },
    command_group="People",
    needs=("auth.self", "users"),
    auth_modes=("file",),
    commands=(
        CommandHome(
            "auth-file", "svc_auth_file.commands:auth_file", "Helps with the file of users of --auth file."
        ),
    ),
)
