"""The plugin's command."""

from __future__ import annotations

import click

from svc_cli import Source, json_option, print_result, source_options
from svc_hello.operations import greet_by_name

__all__ = ["hello"]


@click.command()
@click.argument("name")
@source_options
@json_option
def hello(name: str, source: Source, as_json: bool) -> None:
    """Says hello to NAME, in the words of a database."""
    found = source.call(greet_by_name, name)
    print_result(found, found.greeting, as_json=as_json)
