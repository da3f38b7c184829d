"""The root of the command line: kernel commands, commands of plugins, and how errors end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from svc.errors import SvcError

__all__ = ["main", "root"]

KERNEL_COMMANDS = {
    "start": ("svc.cli.start_command:start", "Serves a database over HTTP."),
    "background": (
        "svc.cli.background_command:background",
        "Keeps the views of a database current and runs its periodic jobs.",
    ),
    "status": ("svc.cli.status_command:status", "Shows who serves a database, and how that goes."),
    "info": ("svc.cli.info_command:info", "Shows what a database is and holds."),
    "verify": ("svc.cli.verify_command:verify", "Checks every byte of a database."),
    "plugins": ("svc.cli.plugins_command:plugins", "Shows plugins, and says which of them a database uses."),
    "completion": ("svc.cli.completion_command:completion", "Prints the completion script of a shell."),
}
"""Where each kernel command is, and its line in the help: neither needs the command to be imported."""

INTERRUPTED = 130
BROKEN_PIPE = 141


class _ReaderGoneError(Exception):
    """Whoever read our output has closed it."""


class RootGroup(click.Group):
    """``svc``: knows its kernel commands by name, and asks the plugins only when it must."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted({*KERNEL_COMMANDS, *_plugin_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, imported now; None when there is none."""
        if cmd_name in KERNEL_COMMANDS:
            module, _, attribute = KERNEL_COMMANDS[cmd_name][0].partition(":")
            command: click.Command = getattr(import_module(module), attribute)
            return command
        return _plugin_commands(ctx).get(cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command, and gives its output away while it can still be told from click's own errors."""
        try:
            outcome = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise _ReaderGoneError from None
        return outcome

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands."""
        lines = {name: summary for name, (_, summary) in KERNEL_COMMANDS.items()}
        lines |= {
            name: command.get_short_help_str(limit=70)
            for name, command in _plugin_commands(ctx).items()
            if not command.hidden
        }
        with formatter.section("Commands"):
            formatter.write_dl(sorted(lines.items()))


@click.group(
    cls=RootGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Every command has --help. Exit codes are listed in the documentation.",
)
@click.version_option(package_name="svc-core", prog_name="svc", message="%(prog)s %(version)s")
def root() -> None:
    """A database of files that keeps every version, and its server."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs ``svc`` and exits.

    Args:
        arguments: the words after ``svc``; those of the process when None.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    try:
        outcome = root.main(words, prog_name="svc", standalone_mode=False)
        code = outcome if isinstance(outcome, int) else 0
    except SvcError as error:
        code = error.exit_code
        _report(error.message, error.code, as_json)
    except click.ClickException as error:
        code = _report_click(error, as_json)
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except _ReaderGoneError:
        # Whoever read our output has enough of it. Nothing may be flushed into the pipe at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = BROKEN_PIPE
    except OSError as error:
        code = 1
        where = f": {error.filename}" if error.filename else ""
        _report(f"{error.strerror or error}{where}", "INTERNAL_ERROR", as_json)
    sys.exit(code)


def _plugin_commands(ctx: click.Context) -> dict[str, click.Command]:
    from svc.cli.opening import boot_commands

    with ctx.scope(cleanup=False):
        return {item.name: item.value.command for item in boot_commands().registries.commands}


def _report_click(error: click.ClickException, as_json: bool) -> int:
    if as_json:
        _report(error.format_message(), "INVALID_INPUT", as_json)
    else:
        error.show()
    return error.exit_code


def _report(message: str, code: str, as_json: bool) -> None:
    text = json.dumps({"error": message, "code": code}) if as_json else f"svc: {message}"
    click.echo(text, err=True)
