"""The hooks of the plugin: its views and its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import CommandRegistry, NamedRegistry, View

__all__ = ["COMMANDS", "svc_register_commands", "svc_register_views"]

COMMANDS = {
    "put": ("svc_files.commands.put:put", "Stores one file, or standard input."),
    "get": ("svc_files.commands.get:get", "Writes one file onto the disk."),
    "ls": ("svc_files.commands.listing:ls", "Lists a directory, or what matches a pattern."),
    "cat": ("svc_files.commands.cat:cat", "Writes files to standard output."),
    "rm": ("svc_files.commands.remove:rm", "Removes files, links and directories."),
    "mv": ("svc_files.commands.changing:mv", "Moves or renames files, links and directories."),
    "cp": ("svc_files.commands.changing:cp", "Copies files, links and directories."),
    "mkdir": ("svc_files.commands.changing:mkdir", "Makes directories."),
    "ln": ("svc_files.commands.changing:ln", "Makes a symbolic link."),
    "deleted": ("svc_files.commands.deleted:deleted", "Lists what was deleted."),
    "load": ("svc_files.commands.load:load", "Imports a directory tree."),
    "dump": ("svc_files.commands.dump:dump", "Writes a directory tree onto the disk."),
}
"""Where each command is, and its line in the help."""


@hookimpl
def svc_register_views(views: NamedRegistry[View]) -> None:
    """Adds the views of deleted files, of the holders of chunks, and of chunks as clients cut them."""
    from svc_files.chunk_holders import ChunkHoldersView
    from svc_files.client_chunks import ClientChunksView
    from svc_files.deleted_view import DeletedFilesView

    views.add(DeletedFilesView())
    views.add(ChunkHoldersView())
    views.add(ClientChunksView())


@hookimpl
def svc_register_commands(commands: CommandRegistry) -> None:
    """Adds the commands that put, get, list, load and dump files."""
    from svc.plugin import LazyCommand

    for name, (home, summary) in COMMANDS.items():
        commands.add(LazyCommand(name, home, summary))
