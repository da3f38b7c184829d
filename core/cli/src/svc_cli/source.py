"""The database that a command works on: a file, or a server's URL."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import click
from click.core import ParameterSource

from svc.errors import UsageError
from svc_cli.opening import DEFAULT_DATABASE, open_database, require_file_name
from svc_cli.options import DatabaseOption

if TYPE_CHECKING:
    from svc.database import Database
    from svc.operations import DeclaredOperation, Page

__all__ = ["Service", "Source", "is_server_url", "source_options"]

CLIENT_GROUP = "svc.clients"
"""Entry points that are clients of servers, by the scheme of their URLs."""

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Service(Protocol):
    """What calls operations: on an opened file as root, or of a server. Methods block.

    They raise what the operation raises, and InvalidInput for what a server would refuse.
    """

    def call(self, operation: DeclaredOperation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Returns what an operation answers; its arguments are those of its function after the call."""

    def items(
        self, operation: DeclaredOperation[P, Page[T]], *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[T]:
        """Yields the items of all pages that an operation answers."""


def is_server_url(text: str) -> bool:
    """Whether a ``--database`` value names a server rather than a file."""
    return text.lower().startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class Source:
    """A database as the options of a command name it.

    Attributes:
        database: path of a file, or URL of a server.
        token: bearer token for a server; never shown.
        tls_ca: PEM file of the authorities to trust, or None.
        named: whether the caller named it, rather than leaving it to the default.
    """

    database: str = DEFAULT_DATABASE
    token: str | None = field(default=None, repr=False)
    tls_ca: str | None = None
    named: bool = True

    @property
    def is_remote(self) -> bool:
        """Whether a server is asked."""
        return is_server_url(self.database)

    @property
    def shown(self) -> str:
        """How it is named to people: a server's URL without what may be secret in it."""
        from svc.log import shown_location

        return shown_location(self.database)

    @contextmanager
    def open(
        self, plugin_id: str | None = None, *, read_only: bool = False, create: bool = False
    ) -> Iterator[Database | Any]:
        """Gives a ``Database``, or the client of a server, for as long as the context lasts. Blocks.

        Args:
            plugin_id: the plugin that the command belongs to; None for commands of the kernel. A server says
                by itself whether it has it.
            read_only: open a file for reading.
            create: make a file that is missing, with its first plugins enabled.

        Raises:
            DatabaseNotFound, PluginMissing: as ``open_database``.
            UsageError: the options do not fit together, or no client for such a URL is installed.
        """
        if self.is_remote:
            with closing(self.connect()) as client:
                yield client
            return
        with self.open_file(plugin_id, read_only=read_only, create=create) as database:
            yield database

    @contextmanager
    def open_service(
        self, plugin_id: str | None = None, *, read_only: bool = False, create: bool = False
    ) -> Iterator[Service]:
        """Gives what calls operations, of a file or a server, for as long as the context lasts. Blocks.

        Args:
            plugin_id: the plugin that the command belongs to; None for commands of the kernel.
            read_only: open a file for reading.
            create: make a file that is missing, with its first plugins enabled.

        Raises:
            DatabaseNotFound, PluginMissing, UsageError: as ``open``.
        """
        if self.is_remote:
            with closing(self.connect()) as client:
                yield client
            return
        from svc_cli.opening import file_context_of
        from svc_cli.service import FileService

        with self.open_file(plugin_id, read_only=read_only, create=create) as database:
            yield FileService(database, lambda module: file_context_of(database, module))

    def call(self, operation: DeclaredOperation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls one operation and returns its answer; opens and closes what it works on. Blocks.

        Raises as ``open_service``, and what the operation raises.
        """
        with self._open_for(operation) as service:
            return service.call(operation, *args, **kwargs)

    def items(
        self, operation: DeclaredOperation[P, Page[T]], *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[T]:
        """Yields the items of all pages of an operation; as ``call``."""
        with self._open_for(operation) as service:
            yield from service.items(operation, *args, **kwargs)

    def ask(self, method: str, url: str, value: Any) -> Any:
        """Calls the operation at a URL with a JSON body, and returns its answer as JSON has it. Blocks.

        For operations of a plugin that may not be there. Raises as ``call``, and NotFound where it is not.
        """
        import msgspec  # 17 ms that no other start of svc should take

        body = msgspec.json.encode(value)
        if self.is_remote:
            with closing(self.connect()) as client:
                headers = {"Content-Type": "application/json"}
                return client.request(method, url, headers=headers, body=body).json(Any)
        from svc_cli.any_operation import call_at_url

        return msgspec.to_builtins(call_at_url(self, method, url, {}, body))

    def _open_for(self, operation: DeclaredOperation[..., Any]) -> AbstractContextManager[Service]:
        from svc_cli.opening import plugin_of_module

        plugin_id = None if self.is_remote else plugin_of_module(operation.module)
        return self.open_service(plugin_id, read_only=operation.reads)

    def open_file(
        self, plugin_id: str | None = None, *, read_only: bool = False, create: bool = False
    ) -> Database:
        """Opens the database file; the caller closes it. See ``open``."""
        require_file_name(self.database, "the path of a database file, or a server's http:// or https:// URL")
        if self.tls_ca is not None:
            raise UsageError("--tls-ca is for a server's URL; the database here is a file.")
        return open_database(self.database, plugin_id, read_only=read_only, create=create)

    def connect(self) -> Any:
        """Makes the client of the server, a ``svc_client.Client``; the caller closes it.

        Raises:
            UsageError: the URL can't be used, or no client for it is installed.
        """
        from svc.plugins.discovery import find_entry_points

        scheme = self.database.partition(":")[0].lower()
        found = next(iter(find_entry_points(CLIENT_GROUP, scheme)), None)
        if found is None:
            raise UsageError(
                f"To speak to {scheme}:// servers this needs the distribution svc-client: "
                "'pip install svc-client' installs it."
            )
        client = found.load()(self.database, token=self.token, ca_file=self.tls_ca)
        if client.sends_secrets_in_clear:
            url = client.address.url
            click.echo(f"svc: warning: the credentials go to {url} unencrypted; use https.", err=True)
        return client

    def require_file(self, reason: str) -> str:
        """Returns the path of the file, for what a server can't be asked.

        Args:
            reason: why it needs a file, the rest of "This needs a database file, not a URL: ...".

        Raises:
            UsageError: it is a URL.
        """
        if self.is_remote:
            raise UsageError(f"This needs a database file, not a URL: {reason}.", field="database")
        return require_file_name(self.database)


def source_options(command: F) -> F:
    """Adds ``--database``, ``--url``, ``--token`` and ``--tls-ca``; the command gets them as ``source``."""

    @click.option(
        "-D",
        "--database",
        cls=DatabaseOption,
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
    def with_source(
        *args: Any, database: str, url: str | None, token: str | None, tls_ca: str | None, **options: Any
    ) -> Any:
        if url is not None and not is_server_url(url):
            raise UsageError("--url takes http://host:port or https://host:port.")
        given = click.get_current_context().get_parameter_source("database")
        named = url is not None or given is not ParameterSource.DEFAULT
        source = Source(url or database, token or None, tls_ca, named)
        return command(*args, source=source, **options)

    return with_source  # type: ignore[return-value]
