"""The pages that describe the plugin say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec
import pytest

import svc_users.api
from svc.plugin import LazyCommand
from svc.plugins import Plugins
from svc_users import plugin
from svc_users.configuration import UsersConfiguration
from svc_users.explaining import Access, Decision, Level, LevelGrant, Membership
from svc_users.groups import GroupChange
from svc_users.records import Grant, Group, User
from svc_users.resources.grants import GrantBody
from svc_users.resources.groups import GroupBody
from svc_users.resources.users import UserBody
from svc_users.users import UserChange

DOCS = Path(__file__).parents[4] / "docs"
HTTP_PAGE = (DOCS / "http" / "users.md").read_text(encoding="utf-8")
PLUGIN_PAGE = (DOCS / "plugins" / "users.md").read_text(encoding="utf-8")
CLI_PAGE = (DOCS / "cli.md").read_text(encoding="utf-8")
SOURCE = {"database", "url", "token", "tls_ca"}
"""Options that all commands share; the page has them once."""


def test_every_setting_has_its_row_and_default() -> None:
    section = PLUGIN_PAGE[PLUGIN_PAGE.index("## Settings") : PLUGIN_PAGE.index("## What is stored")]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", section, re.MULTILINE))
    settings = UsersConfiguration()
    assert set(rows) == set(UsersConfiguration.__struct_fields__)
    for name, shown in rows.items():
        digits, _, unit = shown.partition(" ")
        factor = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20}[unit]
        assert int(digits.replace(",", "")) * factor == getattr(settings, name), name


def test_every_route_and_method_has_its_row(plugins: Plugins) -> None:
    rows = set(re.findall(r"^\| `(\w+ /[^`]+)` \|", HTTP_PAGE, re.MULTILINE))
    routes = {
        f"{method} {route.value.template}"
        for route in plugins.registries.routes.of_plugin("users")
        for method in route.value.responders()
        if method not in ("HEAD", "OPTIONS")
    }
    assert rows == routes


@pytest.mark.parametrize(
    "form",
    [
        UserBody, UserChange, GroupBody, GroupChange, GrantBody,
        Access, Decision, Level, LevelGrant, Membership,
    ],
)  # fmt: skip
def test_every_member_of_a_body_is_described(form: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(form):
        assert f'"{field.encode_name}"' in HTTP_PAGE or f"`{field.encode_name}`" in HTTP_PAGE


@pytest.mark.parametrize(
    ("place", "form"),
    [("/users/by-id/", User), ("/groups/by-name/", Group), ("/grants/<group key>/", Grant)],
)
def test_every_member_of_a_record_is_described(place: str, form: type[msgspec.Struct]) -> None:
    row = next(line for line in PLUGIN_PAGE.splitlines() if line.startswith(f"| `{place}"))
    assert set(re.findall(r"`(\w+)`", row.partition("JSON")[2])) == set(form.__struct_fields__)


def test_every_name_that_other_plugins_may_use_is_described() -> None:
    section = PLUGIN_PAGE[PLUGIN_PAGE.index("## For other plugins") :]
    assert {name for name in svc_users.api.__all__ if f"`{name}" not in section} == set()


def commands() -> list[tuple[str, click.Command]]:
    """The plugin's commands with the section that describes them; groups with each of their own."""
    found: list[tuple[str, click.Command]] = []
    for name, (home, summary) in plugin.COMMANDS.items():
        command = LazyCommand(name, home, summary).command
        inner = command.commands.values() if isinstance(command, click.Group) else [command]
        found += [(name, one) for one in inner]
    return found


def section(name: str) -> str:
    match = re.search(rf"^## svc {name}\b.*?(?=^## )", CLI_PAGE, re.MULTILINE | re.DOTALL)
    assert match is not None, name
    return match[0]


@pytest.mark.parametrize(("name", "command"), commands(), ids=lambda value: getattr(value, "name", value))
def test_every_command_and_option_is_described(name: str, command: click.Command) -> None:
    text = section(name)
    if command.name != name:
        assert f"`svc {name} {command.name}" in text
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name not in SOURCE:
            for spelling in (*parameter.opts, *parameter.secondary_opts):
                assert re.search(rf"`{re.escape(spelling)}[ `]", text), f"{spelling} is not documented"


@pytest.mark.parametrize("name", plugin.COMMANDS)
def test_no_option_is_described_that_is_not_there(name: str) -> None:
    known = {
        spelling
        for owner, command in commands()
        if owner == name
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for spelling in parameter.opts
    }
    assert set(re.findall(r"^\| `(-[^` ]+)", section(name), re.MULTILINE)) <= known


def test_every_command_has_the_name_and_the_line_that_the_list_shows() -> None:
    for name, (home, summary) in plugin.COMMANDS.items():
        command = LazyCommand(name, home, summary).command
        assert command.name == name
        assert command.get_short_help_str(limit=100).rstrip(".") == summary.rstrip(".")
