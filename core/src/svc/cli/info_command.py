"""``svc info``."""

from __future__ import annotations

import click

from svc.cli.opening import open_database
from svc.cli.options import database_option, json_option
from svc.cli.output import print_json, readable_bytes, readable_time

__all__ = ["info"]


@click.command()
@database_option
@json_option
def info(database: str, as_json: bool) -> None:
    """Shows what a database is and holds."""
    from svc.database import information
    from svc.plugins import enabled_plugins

    with open_database(database, read_only=True) as opened:
        facts = information(opened)
        plugins = sorted(enabled_plugins(opened))
    if as_json:
        print_json({**facts, "plugins": plugins})
        return
    totals = facts["totals"]
    lines = [
        ("database", facts["path"]),
        ("id", facts["database_id"]),
        ("format", facts["format"]),
        ("created", readable_time(facts["created_at"])),
        ("version", facts["version"]),
        ("commits", facts["sequence"]),
        ("last commit", readable_time(facts["committed_at"])),
        ("files", totals["files"]),
        ("directories", totals["directories"]),
        ("links", totals["symlinks"]),
        ("content", readable_bytes(totals["size"])),
        ("log", readable_bytes(facts["file_size"])),
        ("objects", facts["objects"]),
        ("plugins", ", ".join(plugins) or "-"),
    ]
    for name, value in lines:
        click.echo(f"{name + ':':<13}{value}")
