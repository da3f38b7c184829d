"""``svc promote``: a version becomes HEAD."""

from __future__ import annotations

import click
import msgspec
from msgspec import UNSET

from svc.errors import UsageError
from svc_backup.commands.output import print_report
from svc_backup.models import PromoteBody
from svc_backup.operations import promote_version
from svc_cli import Source, json_option, print_json, source_options

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
    done = source.call(promote_version, PromoteBody(word or version or ""))
    if as_json:
        print_json(msgspec.structs.replace(done, version=UNSET))
    else:
        print_report([("HEAD", done.head), ("Before", done.previous)])
