"""``svc group``: add, list, show, set, delete groups, and who is in them."""

from __future__ import annotations

from collections.abc import Iterable

import click
import msgspec
from msgspec import UNSET, UnsetType

from svc.errors import UsageError
from svc_cli import (
    Service,
    Source,
    counted,
    json_option,
    print_json,
    print_result,
    print_table,
    source_options,
    terminal_text,
)
from svc_users.models import MOST_ITEMS, Group, GroupChange, NewGroup, PageQuery
from svc_users.operations import (
    change_group,
    create_group,
    delete_group,
    id_of_user,
    list_groups,
    named_user,
    show_group,
)

__all__ = ["group"]

_LONGEST = PageQuery(limit=MOST_ITEMS)

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
    with source.open_service("users") as service:
        made = service.call(create_group, NewGroup(name, _ids(service, members), list(tags)))
        made = _whole(service, made.name)
    _say("added", made, as_json)


@group.command("list")
@source_options
@json_option
def list_(*, source: Source, as_json: bool) -> None:
    """Lists groups."""
    found = list(source.items(list_groups, _LONGEST))
    if as_json:
        print_json(found)
        return
    found.sort(key=lambda group: group.name.casefold())
    print_table(
        [
            (
                terminal_text(group.name),
                counted(group.member_count, "member"),
                terminal_text(", ".join(group.tags)),
            )
            for group in found
        ],
        ("GROUP", "MEMBERS", "TAGS"),
    )


@group.command("show")
@click.argument("name")
@source_options
@json_option
def show(*, name: str, source: Source, as_json: bool) -> None:
    """Shows a group with all its members."""
    with source.open_service("users", read_only=True) as service:
        found = _whole(service, name)
        named = [] if as_json else found.members[:_NAMED]
        people = [named_user(service, user_id) for user_id in named]
    if as_json:
        print_json(found)
        return
    click.echo(f"group {terminal_text(found.name)}, {counted(found.member_count, 'member')}")
    if found.tags:
        click.echo(f"and all users tagged {terminal_text(', '.join(found.tags))}")
    print_table([(terminal_text(user.username), user.user_id) for user in people])
    if len(people) < found.member_count:
        click.echo(f"and {found.member_count - len(people):,} more; --json shows all ids")


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
    _change(source, name, as_json, tags=list(tags))


@group.command("add-member")
@click.argument("name")
@click.argument("users", metavar="USER...", nargs=-1, required=True)
@source_options
@json_option
def add_member(*, name: str, users: tuple[str, ...], source: Source, as_json: bool) -> None:
    """Takes users into a group."""
    _change(source, name, as_json, add=users)


@group.command("remove-member")
@click.argument("name")
@click.argument("users", metavar="USER...", nargs=-1, required=True)
@source_options
@json_option
def remove_member(*, name: str, users: tuple[str, ...], source: Source, as_json: bool) -> None:
    """Takes users out of a group."""
    _change(source, name, as_json, remove=users)


@group.command("delete")
@click.argument("name")
@source_options
@json_option
def delete(*, name: str, source: Source, as_json: bool) -> None:
    """Deletes a group with its grants."""
    gone = source.call(delete_group, name)
    print_result(gone, f"deleted group {terminal_text(gone.name)} and its grants", as_json=as_json)


def _change(
    source: Source,
    name: str,
    as_json: bool,
    *,
    tags: list[str] | UnsetType = UNSET,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
) -> None:
    with source.open_service("users") as service:
        added, removed = _ids(service, add), _ids(service, remove)
        change = GroupChange(tags=tags, add_members=added, remove_members=removed)
        changed = _whole(service, service.call(change_group, name, change).name)
    _say("changed", changed, as_json)


def _ids(service: Service, users: Iterable[str]) -> list[str]:
    return [id_of_user(service, user) for user in users]


def _whole(service: Service, name: str) -> Group:
    """A group with all its members."""
    group = service.call(show_group, name, _LONGEST)
    if group.has_more:
        members = list(service.items(show_group, name, _LONGEST))
        group = msgspec.structs.replace(group, members=members, has_more=False, next_cursor=None)
    return group


def _say(verb: str, group: Group, as_json: bool) -> None:
    print_result(
        group,
        f"{verb} group {terminal_text(group.name)}, {counted(group.member_count, 'member')}",
        as_json=as_json,
    )
