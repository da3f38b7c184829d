"""``svc login``, ``svc logout`` and ``svc whoami``."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from typing import Any

import click
import msgspec

from svc.errors import SvcError, UsageError
from svc.operations.system import show_caller
from svc_cli import (
    Source,
    json_option,
    print_json,
    print_result,
    source_options,
    terminal_text,
    time_text,
)
from svc_client import Client, CredentialStore, SignIn

__all__ = ["login", "logout", "whoami"]

_MOST_KEY = 4_096

_tls_ca = click.option(
    "--tls-ca",
    envvar="SVC_TLS_CA",
    show_envvar=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="PEM file of the authorities that the server's certificate is checked against.",
)


@click.command("login")
@click.argument("url", metavar="URL")
@click.option("--key-file", metavar="FILE", help="Read the API key from this file; - is standard input.")
@_tls_ca
@json_option
def login(*, url: str, key_file: str | None, tls_ca: str | None, as_json: bool) -> None:
    """Exchanges an API key for tokens, which later commands with this URL use.

    The key comes from --key-file, from SVC_API_KEY, or is asked for. It is not kept; the tokens are, in
    $XDG_STATE_HOME/svc/credentials.json (else below ~/.local/state), which nobody else can read.
    """
    store = CredentialStore()
    key = _read_key(key_file)
    with Client(url, api_key=key, ca_file=tls_ca) as client:
        if client.sends_secrets_in_clear:
            shown = client.address.url
            click.echo(f"svc: warning: the credentials go to {shown} unencrypted; use https.", err=True)
        signed_in = client.sign_in(key)
        with Client(url, token=signed_in.token, ca_file=tls_ca) as known:
            me = known.call(show_caller)
        signed_in = msgspec.structs.replace(signed_in, user=me.name)
        before = store.find(client.address)
        store.put(client.address, signed_in)
        if before is not None:
            _sign_out(client, before)
        shown = client.address.url
    print_result(
        {"url": shown, "user_id": me.user_id, "name": me.name, "is_root": me.is_root},
        f"signed in at {shown} as {terminal_text(me.name)}",
        as_json=as_json,
    )


@click.command("logout")
@click.argument("url", metavar="URL")
@_tls_ca
@json_option
def logout(*, url: str, tls_ca: str | None, as_json: bool) -> None:
    """Ends the sign-in at a server and forgets its tokens."""
    with Client(url, ca_file=tls_ca) as client:
        shown = client.address.url
        removed = CredentialStore().remove(client.address)
        ended = removed is not None and _sign_out(client, removed)
    if as_json:
        print_json({"url": shown, "signed_out": removed is not None, "ended": ended})
    elif removed is None:
        click.echo(f"you were not signed in at {shown}")
    else:
        click.echo(f"signed out at {shown}")


@click.command("whoami")
@click.argument("server", metavar="[URL]", required=False)
@source_options
@json_option
def whoami(*, server: str | None, source: Source, as_json: bool) -> None:
    """Says as whom a server knows you, and what narrows that."""
    if server is not None:
        source = Source(server, source.token, source.tls_ca)
    if not source.is_remote:
        raise UsageError("This asks a server: give its http:// or https:// URL.", field="database")
    with closing(source.connect()) as client:
        me = client.call(show_caller)
    if as_json:
        print_json(msgspec.to_builtins(me))
        return
    for name, text in _lines(msgspec.to_builtins(me)):
        click.echo(f"{name:<8} {terminal_text(text)}")


def _lines(me: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [("user", me["name"] + (" (root)" if me["is_root"] else ""))]
    if me["user_id"] is not None:
        lines.append(("id", me["user_id"]))
    lines.append(("mode", me["auth_mode"]))
    if me["key_id"] is not None:
        lines.append(("key", me["key_id"]))
    lines += [("group", group) for group in me["groups"]]
    lines += [("rule", f"{flags} {glob}") for rule in me["rules"] for glob, flags in rule.items()]
    if me["expires_at"] is not None:
        lines.append(("until", time_text(me["expires_at"])))
    return lines


def _read_key(key_file: str | None) -> str:
    """The API key: from a file, the environment, a pipe or a person; never from the options."""
    try:
        if key_file == "-":
            text = sys.stdin.readline(_MOST_KEY)
        elif key_file is not None:
            with open(key_file, encoding="ascii") as file:
                text = file.readline(_MOST_KEY)
        elif given := os.environ.get("SVC_API_KEY"):
            text = given
        elif sys.stdin.isatty():
            text = click.prompt("API key", hide_input=True, err=True)
        else:
            text = sys.stdin.readline(_MOST_KEY)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it holds no key"
        raise UsageError(f"{key_file} cannot be read: {reason}.", field="key-file") from None
    key = text.strip()
    if not key:
        raise UsageError("There is no API key: give --key-file FILE, set SVC_API_KEY, or type it.")
    return key


def _sign_out(client: Client, sign_in: SignIn) -> bool:
    """Ends a sign-in at its server. Says whether that worked; forgotten here it is in any case."""
    if sign_in.refresh_token is None:
        return False
    try:
        client.sign_out(sign_in.refresh_token)
    except SvcError:
        return False
    return True
