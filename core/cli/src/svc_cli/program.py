"""The root of the command line: kernel commands, commands of plugins, and how errors end."""

from __future__ import annotations

import errno
import gc
import io
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click
from click.exceptions import NoArgsIsHelpError, NoSuchCommand

from svc import __version__
from svc.errors import SvcError
from svc.kernel_commands import KERNEL_COMMANDS, KernelCommand
from svc_cli.lazy_command import LazyCommand
from svc_cli.output import terminal_text

if TYPE_CHECKING:
    from svc.plugins import CommandHome

__all__ = ["main", "root"]

GROUPS = ("Files", "Versions", "Search", "People", "Running it", "Clusters", "Plugins")
"""The headings of the help in their order; those that only plugins have come behind them."""
OF_PLUGINS = ("plugins", "api")
"""The kernel's commands about plugins; the others are about running svc."""

COMPLETION_VARIABLE = "_SVC_COMPLETE"
"""Is set where a shell asks for completions."""

INTERNAL, NOT_ALLOWED, FULL = 1, 5, 9
INTERRUPTED = 130
BROKEN_PIPE = 141


class _ReaderGoneError(Exception):
    """Whoever read our output has closed it."""


class RootGroup(click.Group):
    """``svc``: knows its kernel commands by name, and asks the plugins only when it must."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted(_commands(ctx))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, imported when it is used; None when there is none."""
        home: KernelCommand | CommandHome | None = next(
            (one for one in KERNEL_COMMANDS if one.name == cmd_name), None
        )
        if home is None:
            home = _commands(ctx).get(cmd_name)
        if home is None:
            return None
        command = LazyCommand(home.name, home.home, home.summary)
        if COMPLETION_VARIABLE in os.environ:
            from svc_cli.completing import complete_values

            return complete_values(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command that the words begin with; says which of all is meant where there is none."""
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            raise NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from None

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
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for group, command in _grouped_commands(ctx):
            groups.setdefault(group, []).append((command.name, command.summary))
        width = max(len(name) for lines in groups.values() for name, _ in lines)
        for group in (*GROUPS, *sorted(groups.keys() - set(GROUPS))):
            if groups[group]:
                with formatter.section(group):
                    # As wide in each group, so that all lines of the help begin at one place.
                    formatter.write_dl([(name.ljust(width), text) for name, text in sorted(groups[group])])


@click.group(
    cls=RootGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Every command has --help. Exit codes are listed in the documentation.",
)
@click.version_option(__version__, prog_name="svc", message="%(prog)s %(version)s")
def root() -> None:
    """A database of files that keeps every version, and its server."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs ``svc`` and exits."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    if COMPLETION_VARIABLE in os.environ:
        import svc_cli.shells  # noqa: F401 - registers what completes
    if arguments is None:
        _prepare_streams()
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
        _drop(sys.stdout)
        code = BROKEN_PIPE
    except OSError as error:
        code = _report_system(error, as_json)
    if arguments is None:
        # The last collections would go through all that was imported: a tenth of a short command.
        gc.freeze()
    sys.exit(code)


def _commands(ctx: click.Context) -> dict[str, KernelCommand | CommandHome]:
    return {command.name: command for _, command in _grouped_commands(ctx)}


def _grouped_commands(ctx: click.Context) -> list[tuple[str, KernelCommand | CommandHome]]:
    """All commands with their headings; of plugins only the descriptors are read."""
    from svc_cli.opening import usable_descriptors

    found: list[tuple[str, KernelCommand | CommandHome]] = [
        ("Plugins" if one.name in OF_PLUGINS else "Running it", one) for one in KERNEL_COMMANDS
    ]
    with ctx.scope(cleanup=False):
        for descriptor in usable_descriptors():
            found += [(descriptor.command_group, command) for command in descriptor.commands]
    return found


def _prepare_streams() -> None:
    """Opens closed standard streams as ``/dev/null``, for writing only, and buffers standard output.

    The number of a closed one would go to the next file that is opened, such as the database. An unbuffered
    standard output (``PYTHONUNBUFFERED``) may write only a part without failing.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_WRONLY)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))
    raw = getattr(sys.stdout, "buffer", None)
    if isinstance(raw, io.FileIO):
        sys.stdout.flush()
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(raw), sys.stdout.encoding, sys.stdout.errors, line_buffering=True
        )


def _report_system(error: OSError, as_json: bool) -> int:
    where = f": {error.filename}" if error.filename else ""
    code, name = INTERNAL, "INTERNAL_ERROR"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        code, name = FULL, "INSUFFICIENT_STORAGE"
    elif error.errno in (errno.EACCES, errno.EPERM):
        code, name = NOT_ALLOWED, "FORBIDDEN"
    _report(f"{error.strerror or error}{where}", name, as_json)
    try:
        sys.stdout.flush()
    except OSError:
        _drop(sys.stdout)
    return code


def _drop(stream: TextIO) -> None:
    """Discards what a standard stream still holds: flushing it at the exit would fail once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _report_click(error: click.ClickException, as_json: bool) -> int:
    if isinstance(error, NoArgsIsHelpError) and not as_json:
        error.show()
        return error.exit_code
    message = error.format_message()
    if isinstance(error, click.UsageError) and error.ctx is not None and not as_json:
        end = "" if message.endswith((".", "?", "?)")) else "."
        message = f"{message}{end} '{error.ctx.command_path} --help' shows what there is."
    _report(message, "INVALID_INPUT", as_json)
    return error.exit_code


def _report(message: str, code: str, as_json: bool) -> None:
    if as_json:
        text = json.dumps({"error": message, "code": code})
    else:
        # A message may repeat what a file, a path or a server holds.
        text = "svc: " + "\n".join(map(terminal_text, message.split("\n")))
    try:
        click.echo(text, err=True)
    except OSError:
        # The exit code says it still.
        _drop(sys.stderr)
