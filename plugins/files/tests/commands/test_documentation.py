"""docs/cli.md against the commands: every option."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from svc_testing import commands_of

COMMANDS = list(commands_of("files").values())

_PAGE = Path(__file__).resolve().parents[4] / "docs" / "cli.md"
_SHARED = {"database", "url", "token", "tls_ca", "as_json", "version", "snapshot", "fork", "at"}


def _section(name: str) -> str:
    text = _PAGE.read_text(encoding="utf-8")
    match = re.search(rf"^## svc {name}\b.*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    assert match is not None, f"docs/cli.md has no section for svc {name}"
    return match[0]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.name))
def test_every_option_stands_in_the_section_of_its_command(command: click.Command) -> None:
    section = _section(str(command.name))
    shared = _section_of_shared_options()
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            where = shared if parameter.name in _SHARED else section
            for spelling in parameter.opts:
                assert re.search(rf"`{re.escape(spelling)}[ `]", where), f"{spelling} is not documented"


def test_no_section_documents_an_option_that_is_not_there() -> None:
    for command in COMMANDS:
        known = {
            spelling
            for parameter in command.params
            if isinstance(parameter, click.Option)
            for spelling in parameter.opts
        }
        documented = set(re.findall(r"^\| `(-[^` ]+)", _section(str(command.name)), re.MULTILINE))
        assert documented <= known


def _section_of_shared_options() -> str:
    text = _PAGE.read_text(encoding="utf-8")
    return text[text.index("## Which database") : text.index("## svc put")]
