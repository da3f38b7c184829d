"""``svc user``: add, list, show, set, deactivate and activate users."""

from __future__ import annotations

from typing import Any

import click

from svc.errors import UsageError
from svc.plugin import (
    Source,
    json_option,
    print_json,
    print_result,
    print_table,
    source_options,
    terminal_text,
    time_text,
)
from svc_users.commands.store import open_users

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
    with open_users(source) as store:
        made = store.create_user(username, email=email, tags=tags)
    print_result(made, f"added user {terminal_text(made['username'])} ({made['user_id']})", as_json=as_json)


@user.command("list")
@click.option("--tag", metavar="TAG", help="Only those who carry this tag.")
@click.option("--active/--inactive", "is_active", default=None, help="Only those who may sign in, or not.")
@source_options
@json_option
def list_(*, tag: str | None, is_active: bool | None, source: Source, as_json: bool) -> None:
    """Lists users."""
    with open_users(source, read_only=True) as store:
        found = list(store.users(tag=tag, is_active=is_active))
    if as_json:
        print_json(found)
        return
    found.sort(key=lambda one: one["username"].casefold())
    print_table(
        [
            (
                terminal_text(one["username"]),
                one["user_id"],
                _state(one),
                terminal_text(one["email"] or "-"),
                terminal_text(", ".join(one["tags"])),
            )
            for one in found
        ]
    )


@user.command("show")
@click.argument("name", metavar="USER")
@source_options
@json_option
def show(*, name: str, source: Source, as_json: bool) -> None:
    """Shows a user, with all groups."""
    with open_users(source, read_only=True) as store:
        found = store.user(name)
    if as_json:
        print_json(found)
        return
    print_table(
        [
            ("user", terminal_text(found["username"])),
            ("id", found["user_id"]),
            ("state", _state(found)),
            ("email", terminal_text(found["email"] or "-")),
            ("tags", terminal_text(", ".join(found["tags"]) or "-")),
            ("groups", terminal_text(", ".join(found["groups"]))),
            ("made", time_text(found["created_at"])),
            ("changed", time_text(found["updated_at"])),
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
    changes: dict[str, Any] = {}
    if username is not None:
        changes["username"] = username
    if email is not None:
        changes["email"] = email or None
    if tags or no_tags:
        changes["tags"] = list(tags)
    if not changes:
        raise UsageError("There is nothing to change: --username, --email, --tag or --no-tags.")
    _change(name, changes, source, as_json, "changed")


@user.command("deactivate")
@click.argument("name", metavar="USER")
@source_options
@json_option
def deactivate(*, name: str, source: Source, as_json: bool) -> None:
    """Deactivates a user: tokens and keys stop with the next request."""
    _change(name, {"is_active": False}, source, as_json, "deactivated")


@user.command("activate")
@click.argument("name", metavar="USER")
@source_options
@json_option
def activate(*, name: str, source: Source, as_json: bool) -> None:
    """Lets a user who was deactivated sign in again."""
    _change(name, {"is_active": True}, source, as_json, "activated")


def _change(name: str, changes: dict[str, Any], source: Source, as_json: bool, verb: str) -> None:
    with open_users(source) as store:
        changed = store.change_user(name, changes)
    print_result(
        changed, f"{verb} user {terminal_text(changed['username'])} ({changed['user_id']})", as_json=as_json
    )


def _state(user: dict[str, Any]) -> str:
    return "active" if user["is_active"] else "inactive"
