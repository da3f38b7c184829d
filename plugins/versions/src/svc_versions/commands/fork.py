"""``svc fork``: make, list, promote and abandon forks."""

from __future__ import annotations

import click
from msgspec import UNSET

from svc.errors import Conflict
from svc_cli import (
    Source,
    json_option,
    print_json,
    print_result,
    print_table,
    say_in_shell_words,
    source_options,
    time_text,
)
from svc_versions.commands.output import short_hash
from svc_versions.models import ForkQuery, NewFork, PromotionBody
from svc_versions.operations import abandon_fork, create_fork, list_forks, promote_fork

__all__ = ["fork"]

_IN_SHELL_WORDS = {
    ("parameter", "force"): "HEAD has moved since the fork began or was last merged; merge the fork, or "
    "promote it with --force.",
}


@click.group(short_help="Makes, lists, promotes and abandons forks.")
def fork() -> None:
    """Forks: branches that are written without touching HEAD."""


@fork.command("create")
@click.argument("name")
@click.option("--base", metavar="VERSION", help="Snapshot or other version to begin from; else HEAD.")
@source_options
@json_option
def create(*, name: str, base: str | None, source: Source, as_json: bool) -> None:
    """Makes a fork."""
    made = source.call(create_fork, NewFork(name, base))
    print_result(made, f"created fork {made.name} at {made.root_hash}", as_json=as_json)


@fork.command("list")
@click.option("--abandoned", is_flag=True, help="What is left of abandoned forks instead.")
@source_options
@json_option
def list_(*, abandoned: bool, source: Source, as_json: bool) -> None:
    """Lists the active forks, newest first."""
    found = source.call(list_forks, ForkQuery(abandoned)).forks
    if as_json:
        print_json(found)
        return
    rows = []
    for one in found:
        since = one.created_at if one.abandoned_at is UNSET else one.abandoned_at
        # The whole hash of an abandoned one: it is what a fork is made of again.
        root = one.root_hash if abandoned else short_hash(one.root_hash)
        rows.append((one.name, "-" if since is UNSET else time_text(since), root))
    print_table(rows, ("FORK", "SINCE", "VERSION"))


@fork.command("promote")
@click.argument("name")
@click.option("--force", is_flag=True, help="Although HEAD has moved since the fork began or was merged.")
@source_options
@json_option
def promote(*, name: str, force: bool, source: Source, as_json: bool) -> None:
    """Makes a fork's state HEAD; the fork stays."""
    try:
        done = source.call(promote_fork, name, body=PromotionBody(force))
    except Conflict as error:
        say_in_shell_words(error, _IN_SHELL_WORDS)
        raise
    print_result(
        done,
        f"promoted fork {done.name}: HEAD is {done.version}, was {done.previous_version}",
        as_json=as_json,
    )


@fork.command("abandon")
@click.argument("name")
@source_options
@json_option
def abandon(*, name: str, source: Source, as_json: bool) -> None:
    """Abandons a fork; its name becomes free, its state stays until it is collected."""
    gone = source.call(abandon_fork, name)
    print_result(gone, f"abandoned fork {gone.name} at {gone.root_hash}", as_json=as_json)
