"""``svc fork``: make, list, promote and abandon forks."""

from __future__ import annotations

import click

from svc.cli import database_option, json_option, print_json, time_text
from svc_versions.commands.output import opened, print_table, short_hash
from svc_versions.forks import abandon_fork, create_fork, list_abandoned, list_forks, promote_fork

__all__ = ["fork"]


@click.group(short_help="Makes, lists, promotes and abandons forks.")
def fork() -> None:
    """Forks: branches that are written without touching HEAD."""


@fork.command("create")
@click.argument("name")
@click.option("--base", metavar="VERSION", help="Snapshot or other version to begin from; else HEAD.")
@database_option
@json_option
def create(*, name: str, base: str | None, database: str, as_json: bool) -> None:
    """Makes a fork."""
    with opened(database) as store:
        made = create_fork(store, name, base=base)
    if as_json:
        print_json(made.as_json())
    else:
        click.echo(f"created fork {made.name} at {made.root.hex()}")


@fork.command("list")
@click.option("--abandoned", is_flag=True, help="What is left of abandoned forks instead.")
@database_option
@json_option
def list_(*, abandoned: bool, database: str, as_json: bool) -> None:
    """Lists the active forks, newest first."""
    if abandoned:
        _list_abandoned(database, as_json)
        return
    with opened(database, read_only=True) as store:
        found = list_forks(store)
    if as_json:
        print_json([one.as_json() for one in found])
        return
    print_table([(one.name, time_text(one.created_ms), short_hash(one.root)) for one in found])


@fork.command("promote")
@click.argument("name")
@click.option("--force", is_flag=True, help="Although HEAD has moved since the fork began or was merged.")
@database_option
@json_option
def promote(*, name: str, force: bool, database: str, as_json: bool) -> None:
    """Makes a fork's state HEAD; the fork stays."""
    with opened(database) as store:
        done = promote_fork(store, name, force=force)
    if as_json:
        print_json(
            {
                "promoted": True,
                "name": done.fork.name,
                "version": done.version.hex(),
                "previous_version": done.previous.hex(),
            }
        )
    else:
        click.echo(f"promoted fork {done.fork.name}: HEAD is {done.version.hex()}, was {done.previous.hex()}")


@fork.command("abandon")
@click.argument("name")
@database_option
@json_option
def abandon(*, name: str, database: str, as_json: bool) -> None:
    """Abandons a fork; its name becomes free, its state stays until it is collected."""
    with opened(database) as store:
        gone = abandon_fork(store, name)
    if as_json:
        print_json({"abandoned": True, "name": gone.name, "root_hash": gone.root.hex()})
    else:
        click.echo(f"abandoned fork {gone.name} at {gone.root.hex()}")


def _list_abandoned(database: str, as_json: bool) -> None:
    with opened(database, read_only=True) as store:
        found = list_abandoned(store)
    if as_json:
        print_json([one.as_json() for one in found])
        return
    # The whole hash: it is what a fork is made of again.
    print_table([(one.name, time_text(one.abandoned_ms), one.root.hex()) for one in found])
