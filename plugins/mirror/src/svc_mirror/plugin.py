"""The hooks of the plugin: its command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import CommandRegistry

__all__ = ["svc_register_commands"]


@hookimpl
def svc_register_commands(commands: CommandRegistry) -> None:
    """Adds ``svc mirror``."""
    from svc.plugin import LazyCommand

    commands.add(
        LazyCommand("mirror", "svc_mirror.command:mirror", "Keeps a directory of a server here, both ways.")
    )
