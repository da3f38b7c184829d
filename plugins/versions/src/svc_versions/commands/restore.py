"""``svc restore``: a file, link or directory back to what it was."""

from __future__ import annotations

import click

from svc.cli import database_option, json_option, print_json
from svc.errors import NotFound
from svc.paths import format_path, is_system_path, parse_path
from svc_versions.commands.output import opened
from svc_versions.forks import snapshot_or_version
from svc_versions.restoring import restore_path

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
@database_option
@json_option
def restore(*, path: str, version: str, database: str, as_json: bool) -> None:
    """Puts the file, link or directory at PATH back as VERSION has it.

    HEAD as it is before stays in a snapshot, whose name is printed. A directory becomes exactly what it was.
    """
    wanted = parse_path(path)
    if is_system_path(wanted):
        raise NotFound("The version has nothing at this path.", path=format_path(wanted))
    with opened(database) as store:
        source = snapshot_or_version(store, version)
        done = restore_path(store, wanted, source, label=version)
    if as_json:
        print_json(
            {
                "restored": True,
                "path": format_path(done.path),
                "from": version,
                "from_version": source.hex(),
                "auto_snapshot": done.auto_snapshot,
                "size": done.entry.size,
                "entry_type": int(done.entry.kind),
                "version": done.version.hex(),
            }
        )
    else:
        where = format_path(done.path)
        click.echo(f"restored {where} from {version}; HEAD before it is snapshot {done.auto_snapshot}")
