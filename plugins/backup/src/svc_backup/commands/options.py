"""Options that the commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["PLUGIN_ID", "quiet_option"]

PLUGIN_ID = "backup"

Command = TypeVar("Command", bound=Callable[..., Any])


def quiet_option(command: Command) -> Command:
    """Adds ``--quiet``; the command gets it as ``quiet``."""
    return click.option("-q", "--quiet", is_flag=True, help="No progress bar and no report.")(command)
