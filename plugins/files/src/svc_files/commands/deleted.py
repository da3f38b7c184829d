"""``svc deleted``: what was deleted from HEAD, and is not there again."""

from __future__ import annotations

import click

from svc.plugin import format_path, parse_path
from svc_cli import Source, print_table, source_options, terminal_text, time_text
from svc_files.commands.options import json_option
from svc_files.commands.output import json_line, size_text
from svc_files.models import DeletedQuery
from svc_files.operations import list_deleted

__all__ = ["deleted"]


@click.command(short_help="Lists what was deleted.")
@click.argument("path", default="/")
@json_option
@source_options
def deleted(*, path: str, as_json: bool, source: Source) -> None:
    """Lists the files and links that were deleted at and below PATH, the root by default, by their paths.

    With --json, one object a line: the members of an item over HTTP.
    """
    found = source.items(list_deleted, DeletedQuery(path=format_path(parse_path(path))))
    if as_json:
        for item in found:
            json_line(item)
        return
    print_table(
        [(time_text(item.deleted_at), size_text(item.size), terminal_text(item.path)) for item in found],
        ("DELETED", "SIZE", "PATH"),
    )
