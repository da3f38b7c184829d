"""``svc export``: one version into a file of its own."""

from __future__ import annotations

from pathlib import Path

import click

from svc.cli import database_option, json_option, open_database, require_root_key
from svc.database import Database, Outgoing, parse_time, plan_export, plan_patch
from svc.errors import UsageError
from svc.hashing import Hash
from svc_backup.commands.options import PLUGIN_ID, quiet_option, root_key_option
from svc_backup.commands.output import print_json_line, print_report, progress_bar
from svc_backup.output_files import refuse_existing, write_file
from svc_backup.reports import export_json, export_lines, patch_json, patch_lines

__all__ = ["export", "write_with_progress"]


@click.command("export", short_help="Writes a version into a file of its own.")
@click.option("-o", "--output", required=True, metavar="FILE", help="The file; it may not exist yet.")
@click.option("--snapshot", metavar="NAME", help="The version of a snapshot.")
@click.option("--hash", "version", metavar="HEX", help="The version with this root hash.")
@click.option("--at", metavar="TIME", help="The version that HEAD was at a time.")
@click.option("--since", metavar="VERSION", help="Only what changed since this version: a patch.")
@root_key_option
@quiet_option
@json_option
@database_option
def export(
    *,
    database: str,
    output: str,
    snapshot: str | None,
    version: str | None,
    at: str | None,
    since: str | None,
    root_key: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Writes one version, HEAD by default, into a file that 'svc start' opens as a database.

    With the root key the file also holds users, groups, settings and all snapshots; never credentials.
    """
    if since is not None and root_key is not None:
        raise UsageError("A patch (--since) holds user data only; it takes no root key.")
    path = Path(output)
    refuse_existing(path)
    with open_database(database, PLUGIN_ID, read_only=True) as opened:
        root = chosen(opened, snapshot, version, at)
        if root_key is not None:
            require_root_key(opened, root_key)
        if since is not None:
            planned = plan_patch(opened, opened.named_version(since), root)
        else:
            planned = plan_export(opened, root, with_system=root_key is not None)
        with planned as outgoing:
            write_with_progress(outgoing, path, wanted=not (quiet or as_json))
            if as_json:
                members = export_json(outgoing) if since is None else patch_json(outgoing)
                print_json_line({"output": output, **members})
            elif not quiet:
                print_report(export_lines(outgoing) if since is None else patch_lines(outgoing))


def chosen(database: Database, snapshot: str | None, version: str | None, at: str | None) -> Hash:
    """Returns the version that the options name; the first of them that is given."""
    time_ms = None if at is None else parse_time(at)
    return database.resolve_version(snapshot=snapshot, version=version, at=time_ms)


def write_with_progress(outgoing: Outgoing, path: Path, *, wanted: bool) -> None:
    """Writes a planned file, with a bar on a terminal."""
    with progress_bar(wanted=wanted) as show:
        write_file(
            outgoing,
            path,
            pause=lambda: None,
            progress=lambda done, total: show("Writing", done, total),
        )
