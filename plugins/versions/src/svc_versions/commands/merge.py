"""``svc merge``: a fork or snapshot into HEAD, or into a fork."""

from __future__ import annotations

from typing import cast

import click

from svc.cli import database_option, json_option, print_json
from svc.errors import Conflict
from svc.tree import MergeStrategy
from svc_versions.commands.output import opened
from svc_versions.merging import merge_versions
from svc_versions.names import HEAD

__all__ = ["merge"]


@click.command(short_help="Merges a fork or snapshot into HEAD or a fork.")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="[INTO]", default=HEAD)
@click.option(
    "--strategy",
    type=click.Choice(["fail", "ours", "theirs"]),
    default="fail",
    show_default=True,
    help="What decides where both changed a path: nothing, INTO's side, or FROM's side.",
)
@click.option("-m", "--message", metavar="TEXT", help="Text for the log.")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@database_option
@json_option
def merge(
    *,
    source: str,
    target: str,
    strategy: str,
    message: str | None,
    dry_run: bool,
    database: str,
    as_json: bool,
) -> None:
    """Merges FROM, a fork or a snapshot, into INTO: HEAD or a fork.

    Where both changed a path and no strategy decides, each such path is printed and nothing is merged
    (exit code 4).
    """
    with opened(database) as store:
        try:
            outcome = merge_versions(
                store, source, target, cast(MergeStrategy, strategy), message=message, dry_run=dry_run
            )
        except Conflict as error:
            _print_conflicts(error, as_json)
            raise
    if as_json:
        print_json(
            {
                "merged": not dry_run,
                "dry_run": dry_run,
                "from": source,
                "into": target,
                "version": outcome.version.hex(),
                "base": None if outcome.base is None else outcome.base.hex(),
                "changes": outcome.counts.as_json(),
                "fast_forward": outcome.fast_forward,
                "conflicts_resolved": outcome.conflicts,
            }
        )
        return
    counts = outcome.counts
    verb = "would merge" if dry_run else "merged"
    click.echo(
        f"{verb} {outcome.source} into {outcome.target}: "
        f"{counts.added} added, {counts.modified} modified, {counts.deleted} deleted"
    )


def _print_conflicts(error: Conflict, as_json: bool) -> None:
    conflicts = error.details.get("conflicts")
    if conflicts is None:
        return
    if as_json:
        print_json(error.as_body())
        return
    for conflict in conflicts:
        click.echo(f"{conflict['kind']:<15} {conflict['path']}")
    left = error.details["conflict_count"] - len(conflicts)
    if left > 0:
        click.echo(f"and {left} more")
