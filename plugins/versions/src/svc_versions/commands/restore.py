"""``svc restore``: a file, link or directory back to what it was."""

from __future__ import annotations

import click

from svc.errors import NotFound
from svc.plugin import (
    Source,
    format_path,
    is_system_path,
    json_option,
    parse_path,
    print_json,
    source_options,
    terminal_text,
)
from svc_versions.commands.store import open_versions

__all__ = ["restore"]


@click.command(short_help="Puts a file or directory back as it was.")
@click.argument("path")
@click.option(
    "--from",
    "version",
    metavar="VERSION",
    required=True,
    help="A snapshot's name, a root hash, forks/NAME, or a time such as 2026-03-01T12:00:00Z.",
)
@source_options
@json_option
def restore(*, path: str, version: str, source: Source, as_json: bool) -> None:
    """Puts the file, link or directory at PATH back as VERSION has it.

    HEAD as it is before stays in a snapshot, whose name is printed. A directory becomes exactly what it was.
    """
    wanted = parse_path(path)
    if is_system_path(wanted):
        raise NotFound("The version has nothing at this path.", path=format_path(wanted))
    with open_versions(source) as store:
        done = store.restore(wanted, version)
    if as_json:
        print_json(done)
    else:
        before = done["auto_snapshot"]
        text = f"restored {done['path']} from {version}; HEAD before it is snapshot {before}"
        click.echo(terminal_text(text))
