"""The pages that describe the plugin say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec
import pytest

from svc.plugin import LazyCommand
from svc.plugins import Plugins
from svc_client import NewShareLink, Share, SharedPath, ShareLink
from svc_sharing import plugin
from svc_sharing.configuration import SharingConfiguration
from svc_sharing.links import LinkRecord
from svc_sharing.pruning import PruneLinksJob
from svc_sharing.resources.links import LinkBody
from svc_sharing.resources.pages import SessionBody
from svc_sharing.resources.shares import ShareBody, UnshareBody

DOCS = Path(__file__).parents[4] / "docs"
HTTP_PAGE = (DOCS / "http" / "sharing.md").read_text(encoding="utf-8")
PLUGIN_PAGE = (DOCS / "plugins" / "sharing.md").read_text(encoding="utf-8")
CLI_PAGE = (DOCS / "cli.md").read_text(encoding="utf-8")
SOURCE = {"database", "url", "token", "tls_ca"}
"""Options that all commands share; the page has them once."""


def test_every_setting_has_its_row_and_default() -> None:
    section = PLUGIN_PAGE[PLUGIN_PAGE.index("## Settings") : PLUGIN_PAGE.index("## What a link is")]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*?) ?\|", section, re.MULTILINE))
    settings = SharingConfiguration()
    assert set(rows) == set(SharingConfiguration.__struct_fields__)
    for name, shown in rows.items():
        assert shown.replace(",", "") == str(getattr(settings, name)), name


def test_every_route_and_method_has_its_row(plugins: Plugins) -> None:
    rows = set(re.findall(r"^\| `(\w+ /[^`]+)` \|", HTTP_PAGE, re.MULTILINE))
    routes = {
        f"{method} {route.value.template.replace(':path}', '}')}"
        for route in plugins.registries.routes.of_plugin("sharing")
        for method in route.value.responders()
        if method not in ("HEAD", "OPTIONS")
    }
    assert rows == routes


@pytest.mark.parametrize(
    "form", [ShareBody, UnshareBody, LinkBody, SessionBody, Share, SharedPath, ShareLink, NewShareLink]
)
def test_every_member_of_a_body_is_described(form: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(form):
        assert f'"{field.encode_name}"' in HTTP_PAGE or f"`{field.encode_name}`" in HTTP_PAGE


def test_every_member_of_a_record_and_the_job_are_described() -> None:
    row = next(line for line in PLUGIN_PAGE.splitlines() if line.startswith("| `/share-links/by-id/"))
    assert set(re.findall(r"`(\w+)`", row.partition("JSON")[2])) == set(LinkRecord.__struct_fields__)
    assert f"| `{PruneLinksJob.name}` |" in PLUGIN_PAGE


def commands() -> list[click.Command]:
    home, summary = plugin.COMMANDS["share"]
    group = LazyCommand("share", home, summary).command
    assert isinstance(group, click.Group)
    assert group.get_short_help_str(limit=100).rstrip(".") == summary.rstrip(".")
    return list(group.commands.values())


def section() -> str:
    match = re.search(r"^## svc share\b.*?(?=^## )", CLI_PAGE, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[0]


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_every_command_and_option_is_described(command: click.Command) -> None:
    assert f"`svc share {command.name}" in section()
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name not in SOURCE:
            for spelling in parameter.opts:
                assert re.search(rf"`{re.escape(spelling)}[ `]", section()), spelling


def test_no_option_is_described_that_is_not_there() -> None:
    known = {
        spelling
        for command in commands()
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for spelling in parameter.opts
    }
    assert set(re.findall(r"^\| `(-[^` ]+)", section(), re.MULTILINE)) <= known
