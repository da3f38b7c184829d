"""The hooks of the plugin: its commands and its pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_portal.api import PortalPage

    from svc.plugin import CommandRegistry, NamedRegistry

__all__ = ["COMMANDS", "svc_register_commands", "svc_register_portal_pages"]

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


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds the pages of backups."""
    from svc_backup.portal.backups import BackupPage, BackupsPage

    portal_pages.add(BackupsPage())
    portal_pages.add(BackupPage())
