"""The hooks of the plugin: its routes and its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import CommandRegistry, RouteRegistry

__all__ = ["COMMANDS", "svc_register_commands", "svc_register_routes"]

COMMANDS = {
    "export": ("svc_backup.commands.export:export", "Writes a version into a file of its own."),
    "diff": ("svc_backup.commands.diff:diff", "Shows what changed between versions, or writes a patch."),
    "import": ("svc_backup.commands.import_files:import_files", "Takes in exports and patches."),
    "promote": ("svc_backup.commands.promote:promote", "Makes a version HEAD."),
}
"""Where each command is, and its line in the help."""


@hookimpl
def svc_register_routes(routes: RouteRegistry) -> None:
    """Adds export, diff, import and promote, in both families of paths."""
    from svc_backup.resources.diff import DiffResource
    from svc_backup.resources.export import ExportResource
    from svc_backup.resources.import_file import ImportResource
    from svc_backup.resources.promote import PromoteResource

    for family in ("/versions", "/version"):
        routes.add(f"{family}/export", ExportResource())
        routes.add(f"{family}/diff", DiffResource())
        routes.add(f"{family}/import", ImportResource())
        routes.add(f"{family}/promote", PromoteResource())


@hookimpl
def svc_register_commands(commands: CommandRegistry) -> None:
    """Adds the commands, which are imported when they run."""
    from svc.plugin import LazyCommand

    for name, (home, summary) in COMMANDS.items():
        commands.add(LazyCommand(name, home, summary))
