"""Options that the commands share: which database, at which version, and paths that complete themselves."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from svc.cli import open_database
from svc.database import Database
from svc.errors import SvcError, UsageError
from svc.paths import format_path, is_system_path, parse_path
from svc.tree import EntryKind
from svc_files.client import FileStore, LocalStore, ReadPoint, RemoteStore, ServerAddress, is_server_url
from svc_files.resolving import find

__all__ = [
    "PLUGIN_ID",
    "PathText",
    "Target",
    "jobs_option",
    "json_option",
    "read_point_options",
    "target_options",
]

PLUGIN_ID = "files"
DEFAULT_DATABASE = "./data.svcdb"
BROKEN_PIPE_EXIT_CODE = 141

_MOST_COMPLETIONS = 200

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Target:
    """The database that a command works on, as its options name it.

    Attributes:
        database: path of a file, or URL of a server.
        token: bearer token for a server; never shown.
        tls_ca: PEM file of the authorities to trust, or None.
    """

    database: str
    token: str | None
    tls_ca: str | None

    @property
    def is_remote(self) -> bool:
        """Whether a server is asked."""
        return is_server_url(self.database)

    @contextmanager
    def open(self, *, writable: bool = False, create: bool = False) -> Iterator[FileStore]:
        """Opens the store for as long as the context lasts.

        Args:
            writable: whether the command writes.
            create: whether a database file that is missing is made, with the default plugin set.

        Raises:
            DatabaseNotFound: there is no such file.
            PluginMissing: the plugin is not enabled in this database.
            UsageError: the options do not fit together.
        """
        with self._opened(writable, create) as store:
            try:
                yield store
            except SvcError as error:
                name_path(error)
                raise
            except BrokenPipeError:
                # Whoever read our output has enough of it. Nothing may be flushed into the pipe at the end.
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, sys.stdout.fileno())
                os.close(nowhere)
                click.get_current_context().exit(BROKEN_PIPE_EXIT_CODE)

    @contextmanager
    def _opened(self, writable: bool, create: bool) -> Iterator[FileStore]:
        if self.is_remote:
            address = ServerAddress.parse(self.database, self.token, self.tls_ca)
            self._warn_of_clear_text(address)
            with closing(RemoteStore(address)) as remote:
                yield remote
            return
        if self.tls_ca is not None:
            raise UsageError("--tls-ca is for a server's URL; the database here is a file.")
        database = open_database(self.database, PLUGIN_ID, read_only=not writable, create=create)
        with closing(LocalStore(database, self.database)) as local:
            yield local

    def _warn_of_clear_text(self, address: ServerAddress) -> None:
        loopback = address.host in ("localhost", "::1") or address.host.startswith("127.")
        if address.token and not address.secure and not loopback:
            click.echo(f"svc: warning: the token goes to {address.url} unencrypted; use https.", err=True)


def name_path(error: SvcError) -> None:
    """Puts the path that an error is about in front of its message, where people see it."""
    path = error.details.get("path")
    if isinstance(path, str) and path not in error.message:
        error.message = f"{path}: {error.message}"


class PathText(click.ParamType[str]):
    """A path inside the database, as text; completes from a database file."""

    name = "path"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Returns the entries of the directory that the incomplete path is in; nothing on any error."""
        try:
            return _completions(_database_of(ctx), incomplete)
        except (SvcError, OSError):
            return []


def target_options(command: Command) -> Command:
    """Adds ``--database``, ``--url``, ``--token`` and ``--tls-ca``; the command gets them as ``target``."""

    @click.option(
        "-D",
        "--database",
        envvar="SVC_DATABASE",
        default=DEFAULT_DATABASE,
        show_default=True,
        show_envvar=True,
        metavar="FILE|URL",
        help="Database file, or URL of a server.",
    )
    @click.option("--url", metavar="URL", help="URL of a server; the same as a URL for --database.")
    @click.option(
        "--token", envvar="SVC_TOKEN", show_envvar=True, metavar="TOKEN", help="Bearer token for a server."
    )
    @click.option(
        "--tls-ca",
        envvar="SVC_TLS_CA",
        show_envvar=True,
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="PEM file of the authorities that a server's certificate is checked against.",
    )
    @functools.wraps(command)
    def with_target(
        *args: Any, database: str, url: str | None, token: str | None, tls_ca: str | None, **options: Any
    ) -> Any:
        if url is not None and not is_server_url(url):
            raise UsageError("--url takes http://host:port or https://host:port.")
        return command(*args, target=Target(url or database, token, tls_ca), **options)

    return with_target  # type: ignore[return-value]


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


def _database_of(ctx: click.Context) -> str:
    named = ctx.params.get("url") or ctx.params.get("database")
    return str(named or os.environ.get("SVC_DATABASE") or DEFAULT_DATABASE)


def _completions(database: str, incomplete: str) -> list[CompletionItem]:
    if is_server_url(database):
        return []
    slash = incomplete.rfind("/") + 1
    typed_directory, beginning = incomplete[:slash], incomplete[slash:]
    items = []
    with closing(Database(database, read_only=True, create=False)) as opened:
        at = opened.at()
        directory, _ = find(at, parse_path(typed_directory))
        for name, entry in at.entries(directory):
            if not name.startswith(beginning) or is_system_path((*directory, name)):
                continue
            is_directory = entry.kind is EntryKind.DIRECTORY
            lead = typed_directory or format_path(())
            items.append(CompletionItem(f"{lead}{name}{'/' if is_directory else ''}"))
            if len(items) == _MOST_COMPLETIONS:
                break
    return items
