"""``svc merge``: a fork or snapshot into HEAD, or into a fork."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import click

from svc.errors import Conflict, NotFound
from svc_cli import Service, Source, json_option, print_json, source_options, terminal_text
from svc_versions.models import MergeBody, Resolution
from svc_versions.names import HEAD
from svc_versions.operations import merge_versions, show_fork

__all__ = ["merge"]


@click.command(short_help="Merges a fork or snapshot into HEAD or a fork.")
@click.argument("merged", metavar="FROM")
@click.argument("into", metavar="[INTO]", default=HEAD)
@click.option(
    "--strategy",
    type=click.Choice(["fail", "ours", "theirs"]),
    default="fail",
    show_default=True,
    help="What decides where both changed a path: nothing, INTO's side, or FROM's side.",
)
@click.option(
    "--take",
    nargs=2,
    multiple=True,
    type=(click.Choice(["ours", "theirs", "both"]), str),
    metavar="SIDE PATH",
    help="What becomes of one path that both changed: ours, theirs or both.",
)
@click.option("-m", "--message", metavar="TEXT", help="Text for the log.")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@source_options
@json_option
def merge(
    *,
    merged: str,
    into: str,
    strategy: Literal["fail", "ours", "theirs"],
    take: Sequence[tuple[Literal["ours", "theirs", "both"], str]],
    message: str | None,
    dry_run: bool,
    source: Source,
    as_json: bool,
) -> None:
    """Merges FROM, a fork or a snapshot, into INTO: HEAD or a fork.

    Where both changed a path and no strategy decides, each such path is printed and nothing is merged
    (exit code 4).
    """
    resolutions = [Resolution(path=path, take=side) for side, path in take]
    body = MergeBody(merged, into, strategy, message, dry_run, resolutions)
    with source.open_service("versions") as service:
        try:
            done = service.call(merge_versions, body)
        except Conflict as error:
            _print_conflicts(error, as_json)
            raise
        if as_json:
            print_json(done)
            return
        names = terminal_text(f"{_called(service, merged)} into {_called(service, into)}")
    counts = done.changes
    click.echo(
        f"{'would merge' if dry_run else 'merged'} {names}: "
        f"{counts.added} added, {counts.modified} modified, {counts.deleted} deleted"
    )


def _called(service: Service, name: str) -> str:
    """A side of a merge as people call it: a name alone means a fork, where there is one."""
    if name == HEAD:
        return HEAD
    kind, _, rest = name.partition("/")
    if rest and kind in ("forks", "snapshots"):
        return f"{kind.removesuffix('s')} {rest}"
    try:
        return f"fork {service.call(show_fork, name).name}"
    except NotFound:
        return f"snapshot {name}"


def _print_conflicts(error: Conflict, as_json: bool) -> None:
    conflicts = error.details.get("conflicts")
    if conflicts is None:
        return
    if as_json:
        print_json({name: value for name, value in error.as_body().items() if name != "request_id"})
        return
    for conflict in conflicts:
        differs = conflict.get("differs", [])
        about = "" if "content" in differs or "existence" in differs else f" ({', '.join(differs)})"
        click.echo(terminal_text(f"{conflict['kind']:<15} {conflict['path']}{about.replace('_', ' ')}"))
    left = error.details["conflict_count"] - len(conflicts)
    if left > 0:
        click.echo(f"and {left} more")
