"""Options that the commands share: which database, at which version."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from svc.errors import SvcError
from svc.plugin import text_encoding
from svc_cli import Source, say_in_shell_words
from svc_files.client import FileStore, LocalStore, ReadPoint

__all__ = [
    "PLUGIN_ID",
    "charset_of",
    "fork_option",
    "jobs_option",
    "json_option",
    "open_store",
    "read_point_options",
]

PLUGIN_ID = "files"

_CHARSET = re.compile(r"[\w.:+-]{1,40}", re.ASCII)

Command = TypeVar("Command", bound=Callable[..., Any])


@contextmanager
def open_store(source: Source, *, writable: bool = False, create: bool = False) -> Iterator[FileStore]:
    """Opens the store that a command works on; PluginMissing where a database has not enabled the plugin."""
    try:
        with source.open_service(PLUGIN_ID, read_only=not writable, create=create) as service:
            if not source.is_remote:
                yield LocalStore(service, source.database)
                return
            from svc_files.client.remote import RemoteStore

            yield RemoteStore(service)  # type: ignore[arg-type] # a server's is its client
    except SvcError as error:
        say_in_shell_words(error, _IN_SHELL_WORDS)
        name_path(error)
        raise


_IN_SHELL_WORDS = {
    ("condition", "If-Match"): "What stands there is not what --if-match names.",
    ("condition", "If-None-Match"): "Something stands there, and --create-only replaces nothing.",
    ("parameter", "recursive"): "The directory is not empty; --recursive removes what is below it too.",
}
"""What an error says of a request, as the options of these commands say it."""


def name_path(error: SvcError) -> None:
    """Puts the path that an error is about in front of its message, where people see it."""
    path = error.details.get("path")
    if isinstance(path, str) and path not in error.message:
        error.message = f"{path}: {error.message}"


def read_point_options(command: Command) -> Command:
    """Adds ``--at``, ``--version``, ``--snapshot`` and ``--fork``; the command gets them as ``point``."""

    @click.option("--version", "version", metavar="HEX", help="Read at this root hash instead of HEAD.")
    @click.option("--snapshot", metavar="NAME", help="Read at this snapshot.")
    @click.option("--fork", metavar="NAME", help="Read this fork.")
    @click.option(
        "--at", metavar="WHAT", help="Read at a snapshot, a root hash or a time, whichever it names."
    )
    @functools.wraps(command)
    def with_point(
        *args: Any,
        version: str | None,
        snapshot: str | None,
        fork: str | None,
        at: str | None,
        **options: Any,
    ) -> Any:
        return command(*args, point=ReadPoint(snapshot, version, fork, at), **options)

    return with_point  # type: ignore[return-value]


def fork_option(command: Command) -> Command:
    """Adds ``--fork`` to a command that writes; the command gets it as ``fork``."""
    option = click.option("--fork", metavar="NAME", help="Write to this fork instead of HEAD.")
    return option(command)


def json_option(command: Command) -> Command:
    """Adds ``--json``; the command gets it as ``as_json``."""
    option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
    return option(command)


def jobs_option(command: Command) -> Command:
    """Adds ``--jobs``; the command gets it as ``jobs``."""
    option = click.option(
        "-j",
        "--jobs",
        type=click.IntRange(1, 64),
        default=4,
        show_default=True,
        help="Threads that read or write files, and connections to a server.",
    )
    return option(command)


def charset_of(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The name of an encoding as a ``charset``; click's callback of an option."""
    del context, parameter
    if value is None:
        return None
    if _CHARSET.fullmatch(value) and text_encoding(value) is not None:
        return value.lower()
    raise click.BadParameter(f"{value!r} is no encoding of texts, such as windows-1252.")
