"""``svc promote``: a version becomes HEAD."""

from __future__ import annotations

import click

from svc.errors import InvalidInput, UsageError
from svc.plugin import Database, Source, json_option, parse_hash, source_options
from svc_backup.commands.options import PLUGIN_ID
from svc_backup.commands.output import print_json_line, print_report
from svc_backup.promoting import promote_version

__all__ = ["promote"]


@click.command("promote", short_help="Makes a version HEAD.")
@click.argument("word", required=False, metavar="[HASH]")
@click.option("--hash", "version", metavar="HEX", help="Root hash of the version, as the argument names it.")
@json_option
@source_options
def promote(*, source: Source, word: str | None, version: str | None, as_json: bool) -> None:
    """Makes a version that the database holds HEAD, such as one that was imported."""
    if (word is None) == (version is None):
        raise UsageError("One version is needed: 'svc promote HASH', or --hash.", field="hash")
    root = parse_hash(word or version or "")
    if root is None:
        raise InvalidInput("A version is a root hash of 64 hex digits.", field="hash")
    with source.open(PLUGIN_ID) as opened:
        if isinstance(opened, Database):
            before = opened.head().root.hex()
            promote_version(opened, root)
        else:
            before = opened.backup.promote(root.hex()).previous
    if as_json:
        print_json_line({"promoted": True, "head": root.hex(), "previous": before})
    else:
        print_report([("HEAD", root.hex()), ("Before", before)])
