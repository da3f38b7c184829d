"""``svc grant``: grant paths to groups and users, list grants, take them back."""

from __future__ import annotations

import click
import msgspec

from svc.errors import UsageError
from svc.plugin import parse_path
from svc_cli import (
    Service,
    Source,
    json_option,
    print_json,
    print_result,
    print_table,
    source_options,
    terminal_text,
)
from svc_users.models import MOST_ITEMS, Grant, GrantQuery, NewGrant
from svc_users.names import own_group
from svc_users.operations import create_grant, delete_grant, list_grants, named_user
from svc_users.records import FLAGS

__all__ = ["grant"]


@click.group(short_help="Grants paths to groups and users, and takes back.")
def grant() -> None:
    """Grants: what groups and users may do to a path and what is below it.

    FLAGS are letters: c create, r read, u update, d delete, l list, i invoke, f functions, y configure.
    """


@grant.command("add")
@click.argument("path")
@click.option("--group", metavar="NAME", help="To this group.")
@click.option("--user", metavar="USER", help="To this user alone, by name or id.")
@click.option("--allow", metavar="FLAGS", default="", help="What is allowed, such as rl.")
@click.option("--deny", metavar="FLAGS", default="", help="What is denied, whatever others allow here.")
@click.option("--pattern", metavar="GLOB", help="Only for paths below that match, such as **/*.md.")
@source_options
@json_option
def add(
    *,
    path: str,
    group: str | None,
    user: str | None,
    allow: str,
    deny: str,
    pattern: str | None,
    source: Source,
    as_json: bool,
) -> None:
    """Grants a path; what was granted to the same group there is replaced."""
    allowed, denied = _flags(allow, "allow"), _flags(deny, "deny")
    parse_path(path)
    if group is None and user is None:
        raise UsageError("This takes --group or --user.")
    with source.open_service("users") as service:
        to = _group_of(service, group, user) or ""
        made = service.call(create_grant, NewGrant(path, to, allowed, denied, pattern))
    print_result(
        {**msgspec.to_builtins(made.value), "created": made.created},
        f"{'granted' if made.created else 'replaced the grant of'} {_described(made.value)}",
        as_json=as_json,
    )


@grant.command("list")
@click.option("--path", metavar="PATH", help="Only those on this path itself.")
@click.option("--group", metavar="NAME", help="Only those of this group.")
@click.option("--user", metavar="USER", help="Only those of this user alone, by name or id.")
@source_options
@json_option
def list_(*, path: str | None, group: str | None, user: str | None, source: Source, as_json: bool) -> None:
    """Lists grants."""
    if path is not None:
        parse_path(path)
    with source.open_service("users", read_only=True) as service:
        wanted = GrantQuery(path=path, group=_group_of(service, group, user), limit=MOST_ITEMS)
        found = list(service.items(list_grants, wanted))
    if as_json:
        print_json(found)
        return
    found.sort(key=lambda grant: (grant.path, grant.group, grant.path_pattern or ""))
    print_table(
        [
            (
                terminal_text(grant.path),
                terminal_text(grant.path_pattern or "-"),
                _to(grant),
                grant.allow,
                grant.deny,
                grant.grant_id,
            )
            for grant in found
        ],
        ("PATH", "PATTERN", "GROUP", "ALLOW", "DENY", "ID"),
    )


@grant.command("remove")
@click.argument("grant_id", metavar="ID")
@source_options
@json_option
def remove(*, grant_id: str, source: Source, as_json: bool) -> None:
    """Takes a grant back; svc grant list shows the ids."""
    gone = source.call(delete_grant, grant_id)
    print_result(gone, f"took back {_described(gone)}", as_json=as_json)


def _group_of(service: Service, group: str | None, user: str | None) -> str | None:
    if group is not None and user is not None:
        raise UsageError("--group and --user exclude each other.")
    return group if user is None else own_group(named_user(service, user).user_id)


def _flags(text: str, option: str) -> str:
    """A flags string of letters in any order; one that is whole is taken as it is."""
    letters = set(text) - {"-"}
    if not letters <= set(FLAGS):
        raise UsageError(f"--{option} takes letters of {FLAGS}.", field=option)
    return "".join(letter if letter in letters else "-" for letter in FLAGS)


def _to(grant: Grant) -> str:
    """To whom a grant is: a user's own group behind the user's name."""
    group = terminal_text(grant.group)
    return group if grant.username is None else f"{terminal_text(grant.username)} ({group})"


def _described(grant: Grant) -> str:
    pattern = f" ({terminal_text(grant.path_pattern)})" if grant.path_pattern else ""
    return (
        f"{terminal_text(grant.path)}{pattern} to {_to(grant)}: "
        f"allow {grant.allow}, deny {grant.deny} ({grant.grant_id})"
    )
