"""``svc info``."""

from __future__ import annotations

import click

from svc.operations.system import show_information
from svc_cli.options import json_option
from svc_cli.output import print_json, readable_bytes, readable_time, terminal_text
from svc_cli.source import Source, source_options

__all__ = ["info"]


@click.command()
@source_options
@json_option
def info(source: Source, as_json: bool) -> None:
    """Shows what a database is and holds."""
    facts = source.call(show_information)
    if as_json:
        print_json(facts)
        return
    totals = facts.totals
    lines = [
        ("database", facts.path),
        ("id", facts.database_id),
        ("format", facts.format),
        ("created", readable_time(facts.created_at)),
        ("version", facts.version),
        ("commits", facts.sequence),
        ("last commit", readable_time(facts.committed_at)),
        ("files", totals.files),
        ("directories", totals.directories),
        ("links", totals.symlinks),
        ("content", readable_bytes(totals.size)),
        ("log", readable_bytes(facts.file_size)),
        ("objects", facts.objects),
        ("plugins", ", ".join(facts.plugins) or "-"),
    ]
    for name, value in lines:
        click.echo(f"{name + ':':<13}{terminal_text(str(value))}")
    for finding in facts.findings:
        wrong = terminal_text(f"{finding.message} {finding.advice}")
        click.echo(f"{'wrong:':<13}{wrong}".rstrip())
