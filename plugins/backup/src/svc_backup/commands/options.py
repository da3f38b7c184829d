"""Options that the commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["PLUGIN_ID", "quiet_option", "root_key_option"]

PLUGIN_ID = "backup"

Command = TypeVar("Command", bound=Callable[..., Any])


def root_key_option(command: Command) -> Command:
    """Adds ``--root-key`` (also ``SVC_ROOT_KEY``); the command gets it as ``root_key``."""
    return click.option(
        "--root-key",
        envvar="SVC_ROOT_KEY",
        metavar="KEY",
        help="The root key of the database: system data and snapshots too. SVC_ROOT_KEY keeps it out of "
        "the list of processes.",
    )(command)


def quiet_option(command: Command) -> Command:
    """Adds ``--quiet``; the command gets it as ``quiet``."""
    return click.option("-q", "--quiet", is_flag=True, help="No progress bar and no report.")(command)
