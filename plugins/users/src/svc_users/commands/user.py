"""``svc user``: add, list, show, set, deactivate and activate users."""

from __future__ import annotations

import click
from msgspec import UNSET

from svc.errors import UsageError
from svc_cli import (
    Source,
    json_option,
    print_json,
    print_result,
    print_table,
    source_options,
    terminal_text,
    time_text,
)
from svc_users.models import MOST_ITEMS, NewUser, User, UserChange, UserQuery
from svc_users.operations import change_user, create_user, id_of_user, list_users, named_user

__all__ = ["user"]


@click.group(short_help="Makes, lists, changes and deactivates users.")
def user() -> None:
    """Users. USER is a username or a user id."""


@user.command("add")
@click.argument("username")
@click.option("--email", metavar="ADDRESS", help="Where mail goes.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="A tag; may be given several times.")
@source_options
@json_option
def add(*, username: str, email: str | None, tags: tuple[str, ...], source: Source, as_json: bool) -> None:
    """Makes a user."""
    made = source.call(create_user, NewUser(username, email, list(tags)))
    print_result(made, f"added user {terminal_text(made.username)} ({made.user_id})", as_json=as_json)


@user.command("list")
@click.option("--tag", metavar="TAG", help="Only those who carry this tag.")
@click.option("--active/--inactive", "is_active", default=None, help="Only those who may sign in, or not.")
@source_options
@json_option
def list_(*, tag: str | None, is_active: bool | None, source: Source, as_json: bool) -> None:
    """Lists users."""
    found = list(source.items(list_users, UserQuery(tag=tag, is_active=is_active, limit=MOST_ITEMS)))
    if as_json:
        print_json(found)
        return
    found.sort(key=lambda user: user.username.casefold())
    print_table(
        [
            (
                terminal_text(user.username),
                user.user_id,
                _state(user),
                terminal_text(user.email or "-"),
                terminal_text(", ".join(user.tags)),
            )
            for user in found
        ],
        ("USER", "ID", "STATE", "EMAIL", "TAGS"),
    )


@user.command("show")
@click.argument("name", metavar="USER")
@source_options
@json_option
def show(*, name: str, source: Source, as_json: bool) -> None:
    """Shows a user, with all groups."""
    with source.open_service("users", read_only=True) as service:
        found = named_user(service, name)
    if as_json:
        print_json(found)
        return
    print_table(
        [
            ("user", terminal_text(found.username)),
            ("id", found.user_id),
            ("state", _state(found)),
            ("email", terminal_text(found.email or "-")),
            ("tags", terminal_text(", ".join(found.tags) or "-")),
            ("groups", terminal_text(", ".join(found.groups or ()))),
            ("made", time_text(found.created_at)),
            ("changed", time_text(found.updated_at)),
        ]
    )


@user.command("set")
@click.argument("name", metavar="USER")
@click.option("--username", metavar="NAME", help="Another name.")
@click.option("--email", metavar="ADDRESS", help="Another address; an empty one takes it away.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Tags in place of all others.")
@click.option("--no-tags", is_flag=True, help="No tags any more.")
@source_options
@json_option
def set_(
    *,
    name: str,
    username: str | None,
    email: str | None,
    tags: tuple[str, ...],
    no_tags: bool,
    source: Source,
    as_json: bool,
) -> None:
    """Changes a user; what is not named stays."""
    if tags and no_tags:
        raise UsageError("--tag and --no-tags exclude each other.")
    change = UserChange(
        username=UNSET if username is None else username,
        email=UNSET if email is None else email or None,
        tags=list(tags) if tags or no_tags else UNSET,
    )
    if change == UserChange():
        raise UsageError("There is nothing to change: --username, --email, --tag or --no-tags.")
    _change(name, change, source, as_json, "changed")


@user.command("deactivate")
@click.argument("name", metavar="USER")
@source_options
@json_option
def deactivate(*, name: str, source: Source, as_json: bool) -> None:
    """Deactivates a user: tokens and keys stop with the next request."""
    _change(name, UserChange(is_active=False), source, as_json, "deactivated")


@user.command("activate")
@click.argument("name", metavar="USER")
@source_options
@json_option
def activate(*, name: str, source: Source, as_json: bool) -> None:
    """Lets a user who was deactivated sign in again."""
    _change(name, UserChange(is_active=True), source, as_json, "activated")


def _change(name: str, change: UserChange, source: Source, as_json: bool, verb: str) -> None:
    with source.open_service("users") as service:
        changed = service.call(change_user, id_of_user(service, name), change)
    print_result(
        changed, f"{verb} user {terminal_text(changed.username)} ({changed.user_id})", as_json=as_json
    )


def _state(user: User) -> str:
    return "active" if user.is_active else "inactive"
