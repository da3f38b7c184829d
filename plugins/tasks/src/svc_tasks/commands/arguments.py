"""Arguments of tasks as a shell gives them."""

from __future__ import annotations

import json
from typing import Any

import click

from svc.errors import InvalidInput

__all__ = ["arguments_option", "parse_argument"]

arguments_option = click.option(
    "--arg",
    "arguments",
    metavar="NAME=VALUE",
    multiple=True,
    help="An argument; its value is JSON or a text.",
)
"""The option of commands that take arguments of a task, for ``parse_argument``."""


def parse_argument(text: str) -> tuple[str, Any]:
    """Returns name and value of ``NAME=VALUE``; the value is JSON if it can be, else the text itself."""
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise InvalidInput(f"--arg takes NAME=VALUE, not {text!r}.", field="arg")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
