"""docs/cli.md against the commands, and the sample of docs/client.md."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from svc_testing import commands_of

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "cli.md").read_text(encoding="utf-8")
SOURCE = {"database", "url", "token", "tls_ca", "as_json"}
"""Options that all commands share; the page has them once."""

FOUND = commands_of("query")


def section(name: str) -> str:
    match = re.search(rf"^## svc {name}\b.*?(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[0]


def options_of(command: click.Command) -> set[str]:
    commands = command.commands.values() if isinstance(command, click.Group) else [command]
    return {
        spelling
        for one in commands
        for parameter in one.params
        if isinstance(parameter, click.Option) and parameter.name not in SOURCE
        for spelling in parameter.opts
    }


@pytest.mark.parametrize("name", FOUND)
def test_the_page_has_every_option_and_no_other(name: str) -> None:
    documented = set(
        re.findall(r"`(--?[\w-]+)", "".join(re.findall(r"^\| (.*?) \|", section(name), re.MULTILINE)))
    )
    assert documented == options_of(FOUND[name])


def test_the_page_has_every_command_of_the_group() -> None:
    group = FOUND["index"]
    assert isinstance(group, click.Group)
    assert set(re.findall(r"^\| `svc index (\w+)", section("index"), re.MULTILINE)) == set(group.commands)
