"""The commands of svc itself: no plugin may have one of these names."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["KERNEL_COMMANDS", "KernelCommand"]


class KernelCommand(NamedTuple):
    """As ``CommandHome`` of a plugin; ``svc --version`` imports no plugin framework."""

    name: str
    home: str
    summary: str


KERNEL_COMMANDS = (
    KernelCommand("start", "svc_server.commands.start_command:start", "Serves a database over HTTP."),
    KernelCommand(
        "background",
        "svc_server.commands.background_command:background",
        "Keeps the views of a database current and runs its periodic jobs.",
    ),
    KernelCommand(
        "status", "svc_cli.status_command:status", "Shows who serves a database, and how that goes."
    ),
    KernelCommand("info", "svc_cli.info_command:info", "Shows what a database is and holds."),
    KernelCommand(
        "verify", "svc_maintenance.commands.verify_command:verify", "Checks every byte of a database."
    ),
    KernelCommand(
        "plugins", "svc_cli.plugins_command:plugins", "Shows plugins, and says which of them a database uses."
    ),
    KernelCommand("api", "svc_cli.api_command:api", "Calls any operation by its method and URL."),
    KernelCommand(
        "completion", "svc_cli.completion_command:completion", "Prints the completion script of a shell."
    ),
)
