"""The pages that describe the plugin say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec
import pytest

from svc.plugin import LazyCommand
from svc.plugins import Plugins
from svc_versions import plugin
from svc_versions.ancestry import JumpsView
from svc_versions.configuration import VersionsConfiguration
from svc_versions.documents import ForkDocument, SnapshotDocument
from svc_versions.lifecycle import Lifecycle, Retention
from svc_versions.resources.forks import ForkBody
from svc_versions.resources.merging import MergeBody
from svc_versions.resources.restoring import FileRestoreBody
from svc_versions.resources.snapshots import SnapshotBody
from svc_versions.retention import RetentionJob

DOCS = Path(__file__).parents[4] / "docs"
HTTP_PAGE = (DOCS / "http" / "versions.md").read_text(encoding="utf-8")
PLUGIN_PAGE = (DOCS / "plugins" / "versions.md").read_text(encoding="utf-8")
CLI_PAGE = (DOCS / "cli.md").read_text(encoding="utf-8")
SOURCE = {"database", "url", "token", "tls_ca"}
"""Options that all commands share; the page has them once."""

OWN_COMMANDS = ("snapshot", "fork", "merge", "restore")


def test_every_setting_has_its_row_and_default() -> None:
    section = PLUGIN_PAGE[PLUGIN_PAGE.index("## Settings") : PLUGIN_PAGE.index("## What is stored")]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", section, re.MULTILINE))
    settings = VersionsConfiguration()
    assert set(rows) == set(VersionsConfiguration.__struct_fields__)
    for name, shown in rows.items():
        digits, _, unit = shown.partition(" ")
        factor = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20}[unit]
        assert int(digits.replace(",", "")) * factor == getattr(settings, name), name


def test_every_route_is_described(plugins: Plugins) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "http").glob("*.md"))
    for route in plugins.registries.routes.of_plugin("versions"):
        template = re.sub(r":(path|text)\}", "}", route.value.template)
        assert re.search(rf"{re.escape(template)}[`?]", pages), template


@pytest.mark.parametrize("form", [SnapshotBody, ForkBody, MergeBody, FileRestoreBody, Lifecycle, Retention])
def test_every_member_of_a_body_is_described(form: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(form):
        assert f'"{field.encode_name}"' in HTTP_PAGE or f"`{field.encode_name}`" in HTTP_PAGE


@pytest.mark.parametrize(("kind", "form"), [("snapshots", SnapshotDocument), ("forks", ForkDocument)])
def test_every_member_of_a_document_is_described(kind: str, form: type[msgspec.Struct]) -> None:
    row = next(line for line in PLUGIN_PAGE.splitlines() if f"`/versions/{kind}/<name>`" in line)
    assert set(re.findall(r"`(\w+)`", row.partition("JSON")[2])) == set(form.__struct_fields__)


def test_views_and_jobs_are_described() -> None:
    assert f"| `{JumpsView.name}` |" in PLUGIN_PAGE
    assert f"| `{RetentionJob.name}` |" in PLUGIN_PAGE


def commands() -> list[tuple[str, click.Command]]:
    """The plugin's commands with the section that describes them; groups with each of their own."""
    found: list[tuple[str, click.Command]] = []
    for name in OWN_COMMANDS:
        home, summary = plugin.COMMANDS[name]
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
            for spelling in parameter.opts:
                assert re.search(rf"`{re.escape(spelling)}[ `]", text), f"{spelling} is not documented"


@pytest.mark.parametrize("name", OWN_COMMANDS)
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
    for name in OWN_COMMANDS:
        home, summary = plugin.COMMANDS[name]
        command = LazyCommand(name, home, summary).command
        assert command.name == name
        assert command.get_short_help_str(limit=100).rstrip(".") == summary.rstrip(".")
