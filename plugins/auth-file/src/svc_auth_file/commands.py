"""``svc auth-file``: new keys for the file of users, and a check of it. Neither touches a database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import click

from svc.errors import InvalidInput, UsageError
from svc_auth_file.keys import hash_of_key, key_id_of, new_key
from svc_auth_file.source import read_users
from svc_auth_self.api import DEFAULT_KEY_DAYS, LONGEST_KEY_DAYS, check_rules
from svc_cli import counted, json_option, print_json, print_table, terminal_text

__all__ = ["auth_file"]


@click.group(short_help="Helps with the file of users of --auth file.")
def auth_file() -> None:
    """The file of users of `svc start --auth file://PATH`."""


@auth_file.command("new-key", short_help="Makes a key, and the lines of it for the file.")
@click.option("--label", default="", metavar="TEXT", help="What the key is called.")
@click.option(
    "--expires-in-days",
    type=click.IntRange(1, LONGEST_KEY_DAYS),
    default=DEFAULT_KEY_DAYS,
    show_default=True,
    metavar="N",
    help="How long it is good.",
)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="GLOB=FLAGS",
    help="A rule of a scoped key, such as '/reports/**=-r--l---'. Of several the first that fits counts.",
)
@json_option
def new_key_(*, label: str, expires_in_days: int, rules: Sequence[str], as_json: bool) -> None:
    """Prints a new key, and the lines that let its user sign in with it: they go below that [[users]]."""
    if label and not label.isprintable():
        raise UsageError("--label takes one line of text.", field="label")
    try:
        checked = check_rules([_rule(text) for text in rules])
    except InvalidInput as error:
        raise UsageError(f"--rule: {error.message}", field="rule") from None
    key = new_key()
    expires = (datetime.now(UTC) + timedelta(days=expires_in_days)).date()
    lines = ["[[users.keys]]"]
    if label:
        lines.append(f"label = {_toml_text(label)}")
    lines += [f'hash = "{hash_of_key(key)}"', f"expires = {expires.isoformat()}"]
    if checked:
        shown = [
            f"  {{ {_toml_text(glob)} = {_toml_text(flags)} }},"
            for rule in checked
            for glob, flags in rule.items()
        ]
        lines += ["rules = [", *shown, "]"]
    toml = "\n".join(lines)
    if as_json:
        print_json({"key": key, "key_id": key_id_of(hash_of_key(key)), "toml": toml + "\n"})
        return
    click.echo(f"{key}\n")
    click.echo("That is the key; nothing can show it again. Its lines for the file of users:\n", err=True)
    click.echo(toml)


@auth_file.command("check", short_help="Checks a file of users.")
@click.argument("file", type=click.Path())
@json_option
def check(*, file: str, as_json: bool) -> None:
    """Says who is in a file of users, or all that is wrong with it (exit code 2)."""
    users = read_users(file).users
    if as_json:
        print_json(
            {
                "users": [
                    {
                        "username": user.username,
                        "user_id": user.user_id,
                        "root": user.is_root,
                        "active": user.is_active,
                        "groups": sorted(user.groups),
                        "keys": [
                            {"key_id": key.key_id, "label": key.label, "expires_at": key.expires_ms}
                            for key in user.keys
                        ],
                    }
                    for user in users
                ]
            }
        )
        return
    print_table(
        [
            (
                terminal_text(user.username),
                user.user_id,
                ", ".join(["root"] * user.is_root + ["inactive"] * (not user.is_active)) or "-",
                counted(len(user.keys), "key"),
            )
            for user in users
        ],
        ("USER", "ID", "STATE", "KEYS"),
    )
    click.echo(f"{terminal_text(file)} is in order: {counted(len(users), 'user')}.")


def _rule(text: str) -> dict[str, str]:
    glob, separator, flags = text.rpartition("=")
    if not separator:
        raise UsageError("--rule takes GLOB=FLAGS, such as '/reports/**=-r--l---'.", field="rule")
    return {glob: flags}


def _toml_text(text: str) -> str:
    """A basic string of TOML, which escapes as JSON does but for the surrogates that it has not."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
