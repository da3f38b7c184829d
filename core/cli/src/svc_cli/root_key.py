"""The root key at the shell: what a command needs before it touches what only root may see."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from svc.errors import Forbidden
from svc_cli.opening import boot_plugins

if TYPE_CHECKING:
    from svc.database import Database

__all__ = ["require_root_key", "root_key_options"]

F = TypeVar("F", bound=Callable[..., Any])


def root_key_options(purpose: str) -> Callable[[F], F]:
    """Adds ``--root-key`` and ``--auth``; the command gets them as ``root_key`` and ``auth``.

    Args:
        purpose: what the key is good for, as the rest of the sentence "The root key of the database: ...".
    """

    def add(command: F) -> F:
        command = click.option(
            "--auth",
            envvar="SVC_AUTH",
            metavar="MODE",
            help="Beside a root key: the auth mode that judges it, as 'svc start' takes it, where that needs "
            "to be told where its keys are: file:///PATH. [env: SVC_AUTH]",
        )(command)
        return click.option(
            "--root-key",
            envvar="SVC_ROOT_KEY",
            metavar="KEY",
            help=f"The root key of the database: {purpose} SVC_ROOT_KEY keeps it out of the list of "
            "processes.",
        )(command)

    return add


def require_root_key(database: Database, key: str, auth: str | None = None) -> None:
    """Makes sure that a key is the root key of a database, by the auth modes that are enabled in it.

    Args:
        database: the open database.
        key: what the caller gave; it is shown nowhere.
        auth: the auth mode with its argument, as ``--auth`` takes it; None when nobody named one.

    Raises:
        Forbidden: it is not, or no enabled auth mode knows it.
        PluginMissing: an auth mode can't be asked: the one that ``auth`` names, or an enabled one.
        UsageError: a mode needs its argument, and ``auth`` does not give it.
    """
    from svc.plugins import accepts_root_key

    if not accepts_root_key(database, boot_plugins(), key, auth):
        raise Forbidden("This is not the root key of the database.")
