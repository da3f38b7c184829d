"""A command that is imported when it runs: ``svc --help`` needs only its name and its line."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

import click

from svc.errors import UsageError

__all__ = ["LazyCommand", "load_command"]


class LazyCommand(click.Command):
    """Stands for a command in the list of commands, and becomes it when it is called.

    Args:
        name: the word after ``svc``.
        home: where the command is: ``package.module:attribute``; imported when it is first needed.
        short_help: its line in the help, as its own help begins.
    """

    def __init__(self, name: str, home: str, short_help: str) -> None:
        super().__init__(name, help=short_help, short_help=short_help)
        self.home = home
        self._command: click.Command | None = None

    @property
    def command(self) -> click.Command:
        """The command itself."""
        if self._command is None:
            self._command = load_command(self.home)
        return self._command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parses the arguments as the command does; what runs afterwards is the command."""
        return self.command.make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        return self.command.invoke(ctx)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own parameters."""
        return self.command.get_params(ctx)


def load_command(home: str) -> click.Command:
    """Imports the command of a ``package.module:attribute``; UsageError where its distribution is missing."""
    package = home.partition(":")[0].partition(".")[0]
    try:
        command = resolve_name(home)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        distribution = package.replace("_", "-")
        raise UsageError(f"This needs {distribution}: 'pip install {distribution}'.") from None
    if not isinstance(command, click.Command):
        raise TypeError(f"{home} is no click command.")
    return command
