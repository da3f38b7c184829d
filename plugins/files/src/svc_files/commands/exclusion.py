"""What a load or a dump leaves out: ``--exclude``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from svc.errors import UsageError
from svc.plugin import Path, PathGlob, format_path

__all__ = ["NOTHING", "Exclusion", "exclude_option"]

Command = TypeVar("Command", bound=Callable[..., Any])


class Exclusion:
    """Globs of paths below a directory; one without a slash fits a name at any depth.

    Raises UsageError for a glob that names nothing.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._globs = [PathGlob(_segments(pattern)) for pattern in patterns]

    def fits(self, below: Path) -> bool:
        """Whether a path, relative to the directory, is itself left out, and so all that is below it."""
        if not self._globs or not below:
            return False
        text = format_path(below)
        return any(glob.matches(text) for glob in self._globs)

    def holds(self, below: Path) -> bool:
        """Whether a path, or a directory on the way to it, is left out."""
        return any(self.fits(below[:length]) for length in range(1, len(below) + 1))


NOTHING = Exclusion(())


def exclude_option(command: Command) -> Command:
    """Adds ``--exclude``; the command gets it as ``excluded``."""

    @click.option(
        "--exclude",
        "patterns",
        metavar="GLOB",
        multiple=True,
        help="Leave out what this fits; may be given several times.",
    )
    @functools.wraps(command)
    def with_exclusion(*args: Any, patterns: tuple[str, ...], **options: Any) -> Any:
        return command(*args, excluded=Exclusion(patterns), **options)

    return with_exclusion  # type: ignore[return-value]


def _segments(pattern: str) -> list[str]:
    segments = [segment for segment in pattern.split("/") if segment and segment != "."]
    if not segments:
        raise UsageError("A GLOB of --exclude names something below the directory.", field="exclude")
    return segments if "/" in pattern.rstrip("/") else ["**", *segments]
