"""``svc fork``: make, list, promote and abandon forks."""

from __future__ import annotations

import click

from svc.plugin import Source, json_option, print_json, print_result, print_table, source_options, time_text
from svc_versions.commands.output import short_hash
from svc_versions.commands.store import open_versions

__all__ = ["fork"]


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
    with open_versions(source) as store:
        made = store.create_fork(name, base)
    print_result(made, f"created fork {made['name']} at {made['root_hash']}", as_json=as_json)


@fork.command("list")
@click.option("--abandoned", is_flag=True, help="What is left of abandoned forks instead.")
@source_options
@json_option
def list_(*, abandoned: bool, source: Source, as_json: bool) -> None:
    """Lists the active forks, newest first."""
    if abandoned:
        _list_abandoned(source, as_json)
        return
    with open_versions(source, read_only=True) as store:
        found = store.forks()
    if as_json:
        print_json(found)
        return
    print_table([(one["name"], time_text(one["created_at"]), short_hash(one["root_hash"])) for one in found])


@fork.command("promote")
@click.argument("name")
@click.option("--force", is_flag=True, help="Although HEAD has moved since the fork began or was merged.")
@source_options
@json_option
def promote(*, name: str, force: bool, source: Source, as_json: bool) -> None:
    """Makes a fork's state HEAD; the fork stays."""
    with open_versions(source) as store:
        done = store.promote_fork(name, force=force)
    print_result(
        done,
        f"promoted fork {done['name']}: HEAD is {done['version']}, was {done['previous_version']}",
        as_json=as_json,
    )


@fork.command("abandon")
@click.argument("name")
@source_options
@json_option
def abandon(*, name: str, source: Source, as_json: bool) -> None:
    """Abandons a fork; its name becomes free, its state stays until it is collected."""
    with open_versions(source) as store:
        gone = store.abandon_fork(name)
    print_result(gone, f"abandoned fork {gone['name']} at {gone['root_hash']}", as_json=as_json)


def _list_abandoned(source: Source, as_json: bool) -> None:
    with open_versions(source, read_only=True) as store:
        found = store.abandoned_forks()
    if as_json:
        print_json(found)
        return
    # The whole hash: it is what a fork is made of again.
    print_table([(one["name"], time_text(one["abandoned_at"]), one["root_hash"]) for one in found])
