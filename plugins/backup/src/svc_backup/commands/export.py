"""``svc export``: one version into a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from svc.errors import InvalidInput, UsageError
from svc.plugin import Database, Hash, declared_system_paths, parse_hash, parse_time
from svc_backup.commands.options import PLUGIN_ID, quiet_option
from svc_backup.commands.output import print_report, progress_bar
from svc_backup.format import Outgoing, plan_export, plan_patch
from svc_backup.format.applying import shown_paths
from svc_backup.models import DiffQuery, ExportQuery, ExportReport, PatchReport
from svc_backup.operations import diff_versions, export_version
from svc_backup.output_files import refuse_existing, write_file
from svc_backup.reports import export_lines, export_report, patch_lines, patch_report
from svc_cli import (
    Source,
    json_option,
    print_json,
    require_root_key,
    root_key_options,
    source_options,
)

__all__ = ["export", "write_with_progress"]


@click.command("export", short_help="Writes a version into a file of its own.")
@click.argument("file", required=False, metavar="[FILE]")
@click.option("-o", "--output", metavar="FILE", help="The file, as the argument names it.")
@click.option("--snapshot", metavar="NAME", help="The version of a snapshot.")
@click.option("--hash", "version", metavar="HEX", help="The version with this root hash.")
@click.option("--at", metavar="TIME", help="The version that HEAD was at a time.")
@click.option("--since", metavar="VERSION", help="Only what changed since this version: a patch.")
@click.option(
    "--without-lost", is_flag=True, help="Leave out what needs something that a repair could not save."
)
@root_key_options("system data and snapshots too.")
@quiet_option
@json_option
@source_options
def export(
    *,
    source: Source,
    file: str | None,
    output: str | None,
    since: str | None,
    without_lost: bool,
    root_key: str | None,
    auth: str | None,
    quiet: bool,
    as_json: bool,
    **named: str | None,
) -> None:
    """Writes one version, HEAD by default, into FILE, which 'svc start' opens as a database.

    FILE may not exist yet.

    With the root key the file also holds what plugins keep of users, settings and snapshots, as each of them
    declares it; never secrets, and nothing that no plugin in use here declares.
    """
    if since is not None and root_key is not None:
        raise UsageError("A patch (--since) holds user data only; it takes no root key.")
    if since is not None and without_lost:
        raise UsageError("A patch (--since) cannot leave anything out: --without-lost is for exports.")
    if (file is None) == (output is None):
        raise UsageError("One file is needed: 'svc export FILE', or --output.", field="output")
    output = file or output or ""
    path = Path(output)
    refuse_existing(path)
    if root_key is not None:
        source.require_file("system data leave it with the root key, not over HTTP")
    with source.open(PLUGIN_ID, read_only=True) as opened:
        if not isinstance(opened, Database):
            planned = _received(opened, since=since, without_lost=without_lost, **named)
        else:
            root = chosen(opened, **named)
            if root_key is not None:
                require_root_key(opened, root_key, auth)
            if since is not None:
                planned = plan_patch(opened, opened.named_version(since), root)
            else:
                system_paths = None if root_key is None else declared_system_paths()
                planned = plan_export(opened, root, system_paths=system_paths, without_lost=without_lost)
        with planned as outgoing:
            write_with_progress(outgoing, path, wanted=not (quiet or as_json))
            if outgoing.counts.left_out:
                paths = shown_paths(outgoing.counts.left_out)
                click.echo(f"svc: System data that no plugin here declares were left out: {paths}.", err=True)
            if outgoing.counts.lost:
                paths = shown_paths(outgoing.counts.lost)
                click.echo(f"svc: Left out, since a repair could not save it: {paths}.", err=True)
            if as_json:
                print_json((export_report if since is None else patch_report)(outgoing, output))
            elif not quiet:
                print_report(export_lines(outgoing) if since is None else patch_lines(outgoing))


def _received(
    client: Any,
    *,
    snapshot: str | None,
    version: str | None,
    at: str | None,
    since: str | None,
    without_lost: bool,
) -> Outgoing:
    """The same from a server; of the options that name the version the first that is given counts."""
    from svc_backup.commands.remote import received

    if since is None:
        query = ExportQuery(snapshot=snapshot, version=version, at=at, without_lost=without_lost)
        return received(client.stream(export_version, query), ExportReport)
    if snapshot is not None:
        to = f"snapshots/{snapshot}"
    elif version is not None:
        if parse_hash(version) is None:
            raise InvalidInput("A version is a root hash of 64 hex digits.", field="hash")
        to = version
    else:
        to = "HEAD" if at is None else str(parse_time(at))
    return received(client.stream(diff_versions, DiffQuery(source=since, to=to)), PatchReport)


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
