"""``svc key``: make, list and revoke API keys; sign tokens with a new key."""

from __future__ import annotations

import click

from svc.errors import UsageError
from svc_auth_self.models import DEFAULT_KEY_DAYS, LONGEST_KEY_DAYS, KeyQuery, NewKey, NewSigningKey
from svc_auth_self.operations import create_key, list_keys, revoke_key, rotate_signing_key
from svc_cli import (
    Service,
    Source,
    json_option,
    print_json,
    print_result,
    print_table,
    source_options,
    terminal_text,
    time_text,
)
from svc_users.operations import id_of_user

__all__ = ["key"]


@click.group(short_help="Makes, lists and revokes API keys.")
def key() -> None:
    """API keys: what programs and people sign in with."""


@key.command("create", short_help="Makes a key.")
@click.option("--label", default="", help="What to call it.")
@click.option(
    "--days",
    type=click.IntRange(1, LONGEST_KEY_DAYS),
    default=DEFAULT_KEY_DAYS,
    show_default=True,
    help="Days for which it is good.",
)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="GLOB=FLAGS",
    help="What it may do where, such as '/reports/**=-r--l---'; the first rule that matches decides. May be "
    "repeated. Without any it may do what its owner may.",
)
@click.option("--user", metavar="USER", help="Whose it is, by name or id. Root's.")
@source_options
@json_option
def create(
    *, label: str, days: int, rules: tuple[str, ...], user: str | None, source: Source, as_json: bool
) -> None:
    """Makes a key and prints it. It is not shown again.

    In a file it is root's, or that of --user; at a server the caller's.
    """
    parsed = [_rule(text) for text in rules]
    with source.open_service("auth.self") as service:
        wanted = NewKey(label=label, expires_in_days=days, rules=parsed, user_id=_id_or_none(service, user))
        made = service.call(create_key, wanted)
    if as_json:
        print_json(made)
        return
    click.echo(terminal_text(made.key))
    click.echo(f"key {terminal_text(made.key_id)} is good until {time_text(made.expires_at)}", err=True)


@key.command("list")
@click.option("--user", metavar="USER", help="Only those of this user.")
@source_options
@json_option
def list_(*, user: str | None, source: Source, as_json: bool) -> None:
    """Lists keys, oldest first: the caller's; for root everybody's."""
    with source.open_service("auth.self", read_only=True) as service:
        found = list(service.items(list_keys, KeyQuery(user_id=_id_or_none(service, user))))
    if as_json:
        print_json(found)
        return
    print_table(
        [
            (
                one.key_id,
                one.user_id or "share",
                time_text(one.expires_at),
                f"{len(one.rules)} rules" if one.rules else "-",
                terminal_text(one.label),
            )
            for one in found
        ],
        ("ID", "USER", "ENDS", "RULES", "LABEL"),
    )


@key.command("revoke")
@click.argument("key_id", metavar="ID")
@source_options
@json_option
def revoke(*, key_id: str, source: Source, as_json: bool) -> None:
    """Revokes a key; its tokens end at once, at every server of the database."""
    print_result(source.call(revoke_key, key_id), f"revoked key {key_id}", as_json=as_json)


@key.command("rotate-signing", short_help="Signs tokens with a new key.")
@click.option("--end-tokens", is_flag=True, help="End every access token at once; refresh tokens go on.")
@source_options
@json_option
def rotate_signing(*, end_tokens: bool, source: Source, as_json: bool) -> None:
    """Signs tokens with a new key from now on; those of the old one go on until they expire."""
    made = source.call(rotate_signing_key, NewSigningKey(end_tokens))
    print_result(made, f"tokens are signed with the new key {made.kid}", as_json=as_json)


def _id_or_none(service: Service, user: str | None) -> str | None:
    return None if user is None else id_of_user(service, user)


def _rule(text: str) -> dict[str, str]:
    glob, separator, flags = text.rpartition("=")
    if not separator:
        raise UsageError("--rule takes GLOB=FLAGS, such as '/reports/**=-r--l---'.", field="rule")
    return {glob: flags}
