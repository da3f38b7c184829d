"""The plugin's command."""

from __future__ import annotations

import click

from svc.plugin import (
    database_option,
    json_option,
    open_database,
    print_json,
    stored_settings,
    validate_settings,
)
from svc_hello.descriptor import PLUGIN
from svc_hello.greeting import greet

__all__ = ["hello"]


@click.command()
@click.argument("name")
@database_option
@json_option
def hello(name: str, database: str, as_json: bool) -> None:
    """Says hello to NAME, in the words of a database."""
    with open_database(database, PLUGIN.id, read_only=True) as opened:
        settings = validate_settings(PLUGIN, stored_settings(opened, PLUGIN.id))
    text = greet(settings.greeting, name)
    if as_json:
        print_json({"greeting": text})
    else:
        click.echo(text)
