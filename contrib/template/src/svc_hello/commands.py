"""The plugin's command."""

from __future__ import annotations

import click

from svc.plugin import (
    database_option,
    json_option,
    open_database,
    print_result,
    read_settings,
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
        settings = read_settings(PLUGIN, opened)
    text = greet(settings.greeting, name)
    print_result({"greeting": text}, text, as_json=as_json)
