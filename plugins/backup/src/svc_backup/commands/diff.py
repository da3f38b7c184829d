"""``svc diff``: what changed between two versions, as a patch or as text."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from svc.cli import database_option, json_option, open_database
from svc.database import Database, plan_patch
from svc.hashing import Hash
from svc.paths import parse_path
from svc_backup.commands.export import write_with_progress
from svc_backup.commands.options import PLUGIN_ID, quiet_option
from svc_backup.commands.output import print_json_line, print_report
from svc_backup.output_files import refuse_existing
from svc_backup.reports import patch_json, patch_lines

__all__ = ["diff"]


@click.command("diff", short_help="Shows what changed between versions, or writes a patch.")
@click.argument("path", default="/", metavar="[PATH]")
@click.option("--from", "source", required=True, metavar="VERSION", help="The version before.")
@click.option("--to", metavar="VERSION", default="HEAD", show_default=True, help="The version after.")
@click.option("-o", "--output", metavar="FILE", help="Write a patch; the file may not exist yet.")
@click.option("-U", "--context", type=click.IntRange(0, 1000), default=3, help="Lines around a change.")
@click.option("--color/--no-color", default=None, help="Colours; by default on a terminal.")
@quiet_option
@json_option
@database_option
def diff(
    *,
    database: str,
    path: str,
    source: str,
    to: str,
    output: str | None,
    context: int,
    color: bool | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Shows how files at and below PATH changed from one version to another, line by line.

    A version is a snapshot's name, a root hash, forks/NAME, a time, or HEAD. With --output it writes a patch
    of everything that changed, which 'svc import' applies to another copy of the database.
    """
    where = parse_path(path)
    if output is not None:
        if where:
            raise click.UsageError("A patch is of the whole tree: it takes no PATH.")
        refuse_existing(Path(output))
    with open_database(database, PLUGIN_ID, read_only=True) as opened:
        base, target = opened.named_version(source), opened.named_version(to)
        if output is None:
            _show(opened, base, target, path, color=color, context=context, as_json=as_json)
            return
        with plan_patch(opened, base, target) as outgoing:
            write_with_progress(outgoing, Path(output), wanted=not (quiet or as_json))
            if as_json:
                print_json_line({"output": output, **patch_json(outgoing)})
            elif not quiet:
                print_report(patch_lines(outgoing))


def _show(
    database: Database,
    base: Hash,
    target: Hash,
    path: str,
    *,
    color: bool | None,
    context: int,
    as_json: bool,
) -> None:
    if as_json:
        with plan_patch(database, base, target) as outgoing:
            print_json_line(patch_json(outgoing))
        return
    from svc_backup.text_difference import write_text_differences

    colored = sys.stdout.isatty() if color is None else color
    before, after = database.at(base), database.at(target)
    write_text_differences(before, after, parse_path(path), sys.stdout, color=colored, context=context)
