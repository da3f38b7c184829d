"""``svc group``: add, list, show, set, delete groups, and who is in them."""

from __future__ import annotations

from typing import Any

import click

from svc.errors import UsageError
from svc.plugin import (
    Source,
    counted,
    json_option,
    print_json,
    print_result,
    print_table,
    source_options,
    terminal_text,
)
from svc_users.commands.store import open_users

__all__ = ["group"]

_NAMED = 1000
"""Members of a group that are shown with their names, each of which is asked for."""


@click.group(short_help="Makes, lists, changes and deletes groups.")
def group() -> None:
    """Groups of users. USER is a username or a user id."""


@group.command("add")
@click.argument("name")
@click.option("--member", "members", metavar="USER", multiple=True, help="A member; several times.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="All who carry this tag; several times.")
@source_options
@json_option
def add(*, name: str, members: tuple[str, ...], tags: tuple[str, ...], source: Source, as_json: bool) -> None:
    """Makes a group."""
    with open_users(source) as store:
        made = store.create_group(name, members=members, tags=tags)
    _say("added", made, as_json)


@group.command("list")
@source_options
@json_option
def list_(*, source: Source, as_json: bool) -> None:
    """Lists groups."""
    with open_users(source, read_only=True) as store:
        found = list(store.groups())
    if as_json:
        print_json(found)
        return
    found.sort(key=lambda one: one["name"].casefold())
    print_table(
        [
            (
                terminal_text(one["name"]),
                counted(one["member_count"], "member"),
                terminal_text(", ".join(one["tags"])),
            )
            for one in found
        ]
    )


@group.command("show")
@click.argument("name")
@source_options
@json_option
def show(*, name: str, source: Source, as_json: bool) -> None:
    """Shows a group with all its members."""
    with open_users(source, read_only=True) as store:
        found = store.group(name)
        named = [] if as_json else found["members"][:_NAMED]
        people = [store.user(user_id) for user_id in named]
    if as_json:
        print_json(found)
        return
    click.echo(f"group {terminal_text(found['name'])}, {counted(found['member_count'], 'member')}")
    if found["tags"]:
        click.echo(f"and all users tagged {terminal_text(', '.join(found['tags']))}")
    print_table([(terminal_text(one["username"]), one["user_id"]) for one in people])
    if len(people) < found["member_count"]:
        click.echo(f"and {found['member_count'] - len(people):,} more; --json shows all ids")


@group.command("set")
@click.argument("name")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Tags in place of all others.")
@click.option("--no-tags", is_flag=True, help="No tags any more.")
@source_options
@json_option
def set_(*, name: str, tags: tuple[str, ...], no_tags: bool, source: Source, as_json: bool) -> None:
    """Changes the tags of a group."""
    if bool(tags) == no_tags:
        raise UsageError("This takes --tag, once or several times, or --no-tags.")
    with open_users(source) as store:
        changed = store.change_group(name, tags=list(tags))
    _say("changed", changed, as_json)


@group.command("add-member")
@click.argument("name")
@click.argument("users", metavar="USER...", nargs=-1, required=True)
@source_options
@json_option
def add_member(*, name: str, users: tuple[str, ...], source: Source, as_json: bool) -> None:
    """Takes users into a group."""
    with open_users(source) as store:
        changed = store.change_group(name, add=users)
    _say("changed", changed, as_json)


@group.command("remove-member")
@click.argument("name")
@click.argument("users", metavar="USER...", nargs=-1, required=True)
@source_options
@json_option
def remove_member(*, name: str, users: tuple[str, ...], source: Source, as_json: bool) -> None:
    """Takes users out of a group."""
    with open_users(source) as store:
        changed = store.change_group(name, remove=users)
    _say("changed", changed, as_json)


@group.command("delete")
@click.argument("name")
@source_options
@json_option
def delete(*, name: str, source: Source, as_json: bool) -> None:
    """Deletes a group with its grants."""
    with open_users(source) as store:
        gone = store.delete_group(name)
    print_result(gone, f"deleted group {terminal_text(gone['name'])} and its grants", as_json=as_json)


def _say(verb: str, found: dict[str, Any], as_json: bool) -> None:
    print_result(
        found,
        f"{verb} group {terminal_text(found['name'])}, {counted(found['member_count'], 'member')}",
        as_json=as_json,
    )
