"""The hooks of the plugin: its auth mode, its commands and its background jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import AuthMode, CommandRegistry, JobRegistry, NamedRegistry, PluginContext

__all__ = [
    "COMMANDS",
    "svc_background",
    "svc_register_auth_modes",
    "svc_register_commands",
    "svc_start",
]

COMMANDS = {
    "key": ("svc_auth_self.commands.key:key", "Makes, lists and revokes API keys."),
    "login": (
        "svc_auth_self.commands.session:login",
        "Exchanges an API key for tokens, which later commands with this URL use.",
    ),
    "logout": (
        "svc_auth_self.commands.session:logout",
        "Ends the sign-in at a server and forgets its tokens.",
    ),
    "reset-root-key": (
        "svc_auth_self.commands.root_key:reset",
        "Makes a new root key and prints it; every other key of root ends, with its tokens.",
    ),
    "whoami": (
        "svc_auth_self.commands.session:whoami",
        "Says as whom a server knows you, and what narrows that.",
    ),
}
"""Where each command is, and its line in the help."""


@hookimpl
def svc_register_auth_modes(auth_modes: NamedRegistry[AuthMode]) -> None:
    """Adds ``--auth self-contained``."""
    from svc_auth_self.mode import SelfContainedAuthMode

    auth_modes.add(SelfContainedAuthMode())


@hookimpl
def svc_register_commands(commands: CommandRegistry) -> None:
    """Adds the commands of keys and of signing in."""
    from svc.plugin import LazyCommand

    for name, (home, summary) in COMMANDS.items():
        commands.add(LazyCommand(name, home, summary))


@hookimpl
def svc_background(jobs: JobRegistry) -> None:
    """Adds the jobs of signing keys and of what has expired."""
    from svc_auth_self.jobs import PruneJob, SigningKeyJob

    jobs.add(SigningKeyJob())
    jobs.add(PruneJob())


@hookimpl
def svc_start(context: PluginContext) -> None:
    """Notes the settings, for routes and modes of plugins that build on this one."""
    from svc_auth_self.settings import note_settings

    note_settings(context.database, context.configuration)
