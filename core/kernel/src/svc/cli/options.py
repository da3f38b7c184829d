"""Options that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from svc.cli.opening import DEFAULT_DATABASE, require_file_name

__all__ = ["database_option", "json_option"]

F = TypeVar("F", bound=Callable[..., Any])


def database_option(command: F) -> F:
    """Adds ``-D``/``--database`` (also ``SVC_DATABASE``); the command gets it as ``database``."""
    return click.option(
        "-D",
        "--database",
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
