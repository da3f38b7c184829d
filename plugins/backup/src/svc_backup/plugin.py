"""The hooks of the plugin: its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import CommandRegistry

__all__ = ["COMMANDS", "svc_register_commands"]

COMMANDS = {
    "export": ("svc_backup.commands.export:export", "Writes a version into a file of its own."),
    "diff": ("svc_backup.commands.diff:diff", "Shows what changed between versions, or writes a patch."),
    "import": ("svc_backup.commands.import_files:import_files", "Takes in exports and patches."),
    "promote": ("svc_backup.commands.promote:promote", "Makes a version HEAD."),
}
"""Where each command is, and its line in the help."""


@hookimpl
def svc_register_commands(commands: CommandRegistry) -> None:
    """Adds the commands, which are imported when they run."""
    from svc.plugin import LazyCommand

    for name, (home, summary) in COMMANDS.items():
        commands.add(LazyCommand(name, home, summary))
