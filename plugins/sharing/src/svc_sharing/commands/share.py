"""``svc share``: share with users and groups, make links, list both, take them back."""

from __future__ import annotations

import click
import msgspec

from svc.errors import UsageError
from svc.plugin import Operation
from svc_cli import (
    Source,
    counted,
    json_option,
    print_json,
    print_result,
    print_table,
    source_options,
    terminal_text,
    time_text,
)
from svc_sharing import operations as op
from svc_sharing.models import (
    MOST_ITEMS,
    LinkQuery,
    NewLink,
    NewShares,
    OldShares,
    PageQuery,
    ShareQuery,
)

__all__ = ["share"]

_LETTERS = "".join(operation.letter for operation in Operation)


@click.group(short_help="Shares files with users and groups, and by links.")
def share() -> None:
    """Shares and links.

    FLAGS are letters: c create, r read, u update, d delete, l list, i invoke, f functions, y configure.
    """


@share.command("add", short_help="Shares paths with users and groups.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--user", "users", metavar="USER", multiple=True, help="With this user, by name or id.")
@click.option("--group", "groups", metavar="NAME", multiple=True, help="With this group.")
@click.option("--allow", metavar="FLAGS", default="rl", show_default=True, help="What they may do.")
@source_options
@json_option
def add(
    *,
    paths: tuple[str, ...],
    users: tuple[str, ...],
    groups: tuple[str, ...],
    allow: str,
    source: Source,
    as_json: bool,
) -> None:
    """Shares paths with users and groups; who had a share there has the new one instead."""
    wanted = NewShares(paths=list(paths), users=list(users), groups=list(groups), permissions=_flags(allow))
    made = source.call(op.share_paths, wanted)
    if as_json:
        print_json(made)
        return
    names = [user.username or user.user_id for user in made.users] + made.groups
    for path in made.paths:
        click.echo(f"shared {terminal_text(path)} with {terminal_text(', '.join(names))}")


@share.command("list", short_help="Lists with whom a path is shared.")
@click.argument("path")
@source_options
@json_option
def list_(*, path: str, source: Source, as_json: bool) -> None:
    """Lists with whom a path itself is shared: user or group, flags, when."""
    found = list(source.items(op.list_shares, ShareQuery(path=path, limit=MOST_ITEMS)))
    if as_json:
        print_json(found)
        return
    print_table(
        [
            (
                "group" if one.user_id is None else "user",
                terminal_text(one.group or one.username or one.user_id or ""),
                one.permissions,
                time_text(one.created_at),
            )
            for one in found
        ],
        ("KIND", "WITH", "MAY", "SINCE"),
    )


@share.command("remove", short_help="Takes shares back.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--user", "users", metavar="USER", multiple=True, help="From this user, by name or id.")
@click.option("--group", "groups", metavar="NAME", multiple=True, help="From this group.")
@source_options
@json_option
def remove(
    *,
    paths: tuple[str, ...],
    users: tuple[str, ...],
    groups: tuple[str, ...],
    source: Source,
    as_json: bool,
) -> None:
    """Takes the shares of paths back from users and groups."""
    ended = OldShares(paths=list(paths), users=list(users), groups=list(groups))
    removed = source.call(op.end_shares, ended).removed
    print_result({"removed": removed}, f"took back {counted(removed, 'share')}", as_json=as_json)


@share.command("link", short_help="Makes a link that opens without an account.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--allow", metavar="FLAGS", default="rl", show_default=True, help="What its bearer may do.")
@click.option("--days", type=click.IntRange(1, 3650), help="Days for which it is good.")
@click.option(
    "--base-url", metavar="URL", help="What the link begins with, such as https://files.example.org."
)
@source_options
@json_option
def link(
    *,
    paths: tuple[str, ...],
    allow: str,
    days: int | None,
    base_url: str | None,
    source: Source,
    as_json: bool,
) -> None:
    """Makes a link and prints it. It is not shown again; whoever has it may read what it opens."""
    wanted = NewLink(paths=list(paths), permissions=_flags(allow), expires_in_days=days, base_url=base_url)
    made = source.call(op.create_link, wanted)
    if source.is_remote and made.url.startswith("/"):  # the server does not know where it is reached
        made = msgspec.structs.replace(made, url=source.database.rstrip("/") + made.url)
    if as_json:
        print_json(made)
        return
    click.echo(terminal_text(made.url))
    click.echo(f"link {terminal_text(made.key_id)} is good until {time_text(made.expires_at)}", err=True)


@share.command("links", short_help="Lists links.")
@click.argument("path", required=False)
@source_options
@json_option
def links(*, path: str | None, source: Source, as_json: bool) -> None:
    """Lists the links that work, oldest first: all, or those for PATH itself."""
    found = list(source.items(op.list_links, LinkQuery(path=path, limit=MOST_ITEMS)))
    if as_json:
        print_json(found)
        return
    print_table(
        [
            (one.key_id, one.permissions, time_text(one.expires_at), terminal_text(", ".join(one.paths)))
            for one in found
        ],
        ("ID", "MAY", "ENDS", "PATHS"),
    )


@share.command("revoke-link", short_help="Ends a link.")
@click.argument("key_id", metavar="ID")
@source_options
@json_option
def revoke_link(*, key_id: str, source: Source, as_json: bool) -> None:
    """Ends a link; whoever opened it is out with the next request."""
    ended = source.call(op.revoke_link, key_id)
    print_result(ended, f"ended link {terminal_text(key_id)}", as_json=as_json)


@share.command("with-me", short_help="Lists what is shared with you.")
@click.option("--as", "user", metavar="USER", help="In a file: with this user, by name or id.")
@source_options
@json_option
def with_me(*, user: str | None, source: Source, as_json: bool) -> None:
    """Lists what is shared with you at a server, or with a user of a file: flags, when, path."""
    if source.is_remote:
        if user is not None:
            raise UsageError("--as is for a database file; a server knows who asks.", field="as")
        found = list(source.items(op.list_shared_with_me, PageQuery(limit=MOST_ITEMS)))
    else:
        if user is None:
            raise UsageError("A database file does not know who asks: say --as USER.", field="as")
        from svc_sharing.grants import shared_with_user

        with source.open_file("sharing", read_only=True) as database:
            found = list(shared_with_user(database, user))
    if as_json:
        print_json(found)
        return
    print_table(
        [(one.effective_permissions, time_text(one.shared_at), terminal_text(one.path)) for one in found],
        ("MAY", "SINCE", "PATH"),
    )


def _flags(letters: str) -> str:
    given = set(letters) - {"-"}
    if not given or not given <= set(_LETTERS):
        raise UsageError(f"--allow takes some of the letters {_LETTERS}.", field="allow")
    return "".join(letter if letter in given else "-" for letter in _LETTERS)
