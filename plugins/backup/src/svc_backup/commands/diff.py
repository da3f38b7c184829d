"""``svc diff``: what changed between two versions, as a patch or as text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from svc.errors import UsageError
from svc.plugin import Database, parse_path
from svc_backup.commands.export import write_with_progress
from svc_backup.commands.options import PLUGIN_ID, quiet_option
from svc_backup.commands.output import print_report
from svc_backup.format import Outgoing, plan_patch
from svc_backup.models import DiffQuery, PatchReport
from svc_backup.operations import diff_versions
from svc_backup.output_files import refuse_existing
from svc_backup.reports import patch_lines, patch_report
from svc_cli import Source, json_option, print_json, source_options

__all__ = ["diff"]


@click.command("diff", short_help="Shows what changed between versions, or writes a patch.")
@click.argument("words", nargs=-1, metavar="[FROM [TO]] [PATH]")
@click.option("--from", "before", metavar="VERSION", help="The version before.")
@click.option("--to", metavar="VERSION", help="The version after; HEAD by default.")
@click.option("-o", "--output", metavar="FILE", help="Write a patch; the file may not exist yet.")
@click.option("-U", "--context", type=click.IntRange(0, 1000), default=3, help="Lines around a change.")
@click.option("--color/--no-color", default=None, help="Colours; by default on a terminal.")
@quiet_option
@json_option
@source_options
def diff(
    *,
    source: Source,
    words: tuple[str, ...],
    before: str | None,
    to: str | None,
    output: str | None,
    context: int,
    color: bool | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Shows how files at and below PATH changed between the versions FROM and TO, line by line.

    A version is a snapshot's name, a root hash, forks/NAME, a time, or HEAD. PATH begins with a slash.
    With --output it writes a patch of everything that changed, which 'svc import' applies to another
    copy of the database.
    """
    before, to, path = _named(words, before, to)
    where = parse_path(path)
    if output is not None:
        if where:
            raise UsageError("A patch is of the whole tree: it takes no PATH.")
        refuse_existing(Path(output))
    colored = sys.stdout.isatty() if color is None else color
    with source.open(PLUGIN_ID, read_only=True) as opened:
        if output is None and not as_json:
            _show(opened, before, to, path, color=colored, context=context)
            return
        with _patch(opened, before, to) as outgoing:
            if output is None:
                print_json(patch_report(outgoing))
                return
            write_with_progress(outgoing, Path(output), wanted=not (quiet or as_json))
            if as_json:
                print_json(patch_report(outgoing, output))
            elif not quiet:
                print_report(patch_lines(outgoing))


def _named(words: tuple[str, ...], before: str | None, to: str | None) -> tuple[str, str, str]:
    """The versions before and after and the path, as options or as words without them.

    No version has a name that begins with a slash; beside --from, a word alone is a path in any case.
    """
    left = list(words)
    path = (
        left.pop() if left and (left[-1].startswith("/") or (before is not None and len(left) == 1)) else "/"
    )
    if before is None and left:
        before = left.pop(0)
    if to is None and left:
        to = left.pop(0)
    if before is None:
        raise UsageError("The version before is needed: 'svc diff FROM', or --from.", field="from")
    if left:
        raise UsageError(f"'svc diff' takes two versions and a path; {left[0]!r} is more.")
    return before, "HEAD" if to is None else to, path


def _patch(opened: Database | Any, before: str, to: str) -> Outgoing:
    if isinstance(opened, Database):
        return plan_patch(opened, opened.named_version(before), opened.named_version(to))
    from svc_backup.commands.remote import received

    return received(opened.stream(diff_versions, DiffQuery(source=before, to=to)), PatchReport)


def _show(opened: Database | Any, before: str, to: str, path: str, *, color: bool, context: int) -> None:
    if isinstance(opened, Database):
        from svc_backup.text_difference import write_text_differences

        with opened.hold():  # whoever reads the differences may read slowly
            base, target = opened.at(opened.named_version(before)), opened.at(opened.named_version(to))
            write_text_differences(base, target, parse_path(path), sys.stdout, color=color, context=context)
        return
    from svc_backup.commands.remote import show_difference

    show_difference(opened, before, to, path, color=color, context=context)
