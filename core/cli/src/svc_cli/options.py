"""Options that many commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from svc_cli.opening import DEFAULT_DATABASE, require_file_name

__all__ = ["DatabaseOption", "database_option", "json_option"]

F = TypeVar("F", bound=Callable[..., Any])


class DatabaseOption(click.Option):
    """``--database``. An empty ``SVC_DATABASE`` is a value, and a wrong one: it does not mean the default."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Returns what the environment says; click takes an empty variable for one that is not set."""
        return os.environ.get("SVC_DATABASE")


def database_option(command: F) -> F:
    """Adds ``-D``/``--database`` (also ``SVC_DATABASE``); the command gets it as ``database``."""
    return click.option(
        "-D",
        "--database",
        cls=DatabaseOption,
        envvar="SVC_DATABASE",
        default=DEFAULT_DATABASE,
        show_default=True,
        show_envvar=True,
        metavar="FILE",
        help="The database.",
        callback=lambda _context, _parameter, value: require_file_name(value),
    )(command)


def json_option(command: F) -> F:
    """Adds ``--json``; the command gets it as ``as_json``. Errors are then JSON on standard error too."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")(command)
