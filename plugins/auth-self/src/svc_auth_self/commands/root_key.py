"""``svc reset-root-key``: for whoever has lost the root key, and still has the database's file."""

from __future__ import annotations

import click

from svc_auth_self.root_key import reset_root_key
from svc_cli import database_option, json_option, open_database, print_json

__all__ = ["reset"]


@click.command("reset-root-key")
@database_option
@json_option
def reset(*, database: str, as_json: bool) -> None:
    """Makes a new root key and prints it; every other key of root ends, with its tokens.

    A server may run with the database meanwhile: it takes the new key at once.
    """
    with open_database(database, "auth.self") as opened:
        text, revoked = reset_root_key(opened)
    if as_json:
        print_json({"key": text, "revoked": revoked})
        return
    click.echo(f"Root key: {text}")
    click.echo(f"revoked {revoked} other key{'' if revoked == 1 else 's'} of root", err=True)
