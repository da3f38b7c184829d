"""``svc promote``: a version becomes HEAD."""

from __future__ import annotations

import click

from svc.cli import database_option, json_option, open_database
from svc.errors import InvalidInput
from svc.hashing import parse_hash
from svc_backup.commands.options import PLUGIN_ID
from svc_backup.commands.output import print_json_line, print_report
from svc_backup.promoting import promote_version

__all__ = ["promote"]


@click.command("promote", short_help="Makes a version HEAD.")
@click.option("--hash", "version", required=True, metavar="HEX", help="Root hash of the version.")
@json_option
@database_option
def promote(*, database: str, version: str, as_json: bool) -> None:
    """Makes a version that the database holds HEAD, such as one that was imported."""
    root = parse_hash(version)
    if root is None:
        raise InvalidInput("A version is a root hash of 64 hex digits.", field="hash")
    with open_database(database, PLUGIN_ID) as opened:
        before = opened.head().root
        promote_version(opened, root)
    if as_json:
        print_json_line({"promoted": True, "head": root.hex(), "previous": before.hex()})
    else:
        print_report([("HEAD", root.hex()), ("Before", before.hex())])
