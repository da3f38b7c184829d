"""What the commands print, and how they open their database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from svc.cli import open_database
from svc.database import Database

__all__ = ["PLUGIN_ID", "opened", "print_table", "short_hash"]

PLUGIN_ID = "versions"
_SHORT = 12


@contextmanager
def opened(path: str, *, read_only: bool = False) -> Iterator[Database]:
    """Opens a command's database for as long as the context lasts.

    Raises:
        DatabaseNotFound: there is none.
        PluginMissing: the plugin is not enabled in it.
    """
    with open_database(path, PLUGIN_ID, read_only=read_only) as database:
        yield database


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Prints columns as wide as their widest cell."""
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        click.echo("  ".join(cells).rstrip())


def short_hash(root: bytes) -> str:
    """The first digits of a hash, enough to tell versions apart at a glance."""
    return root.hex()[:_SHORT]
