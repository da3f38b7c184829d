"""The pages that describe the plugin say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec
import pytest

import svc_auth_self.api
from svc.plugin import LazyCommand
from svc.plugins import Plugins
from svc_auth_self import plugin
from svc_auth_self.configuration import AuthSelfConfiguration
from svc_auth_self.keys import KeyRecord
from svc_auth_self.refresh import Chain
from svc_auth_self.resources.keys import KeyBody
from svc_auth_self.resources.signing import RotateBody
from svc_auth_self.resources.tokens import RefreshBody, TokenBody
from svc_auth_self.sign_in import SignedIn
from svc_auth_self.signing import SigningRecord

DOCS = Path(__file__).parents[3] / "docs"
HTTP_PAGE = (DOCS / "http" / "auth.md").read_text(encoding="utf-8")
PLUGIN_PAGE = (DOCS / "plugins" / "auth-self.md").read_text(encoding="utf-8")
CLI_PAGE = (DOCS / "cli.md").read_text(encoding="utf-8")
SOURCE = {"database", "url", "token", "tls_ca"}
"""Options that all commands share; the page has them once."""


def test_every_setting_has_its_row_and_default() -> None:
    section = PLUGIN_PAGE[PLUGIN_PAGE.index("## Settings") : PLUGIN_PAGE.index("## Keys")]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d,]+) \|", section, re.MULTILINE))
    defaults = msgspec.to_builtins(AuthSelfConfiguration())
    assert {name: int(shown.replace(",", "")) for name, shown in rows.items()} == defaults


def test_every_route_is_named(plugins: Plugins) -> None:
    routes = plugins.registries.routes.of_plugin("auth.self")
    templates = {item.value.template for item in routes}
    assert {one for one in templates if f"{one}`" not in HTTP_PAGE} == set()


@pytest.mark.parametrize("form", [KeyBody, TokenBody, RefreshBody, RotateBody, SignedIn])
def test_every_member_of_a_body_is_described(form: type[msgspec.Struct]) -> None:
    for name in form.__struct_fields__:
        assert f'"{name}"' in HTTP_PAGE or f"`{name}`" in HTTP_PAGE


@pytest.mark.parametrize(
    ("place", "form"),
    [("/api-keys/", KeyRecord), ("/refresh-tokens/", Chain), ("/signing-keys/", SigningRecord)],
)
def test_every_member_of_a_record_is_described(place: str, form: type[msgspec.Struct]) -> None:
    row = next(line for line in PLUGIN_PAGE.splitlines() if line.startswith(f"| `{place}"))
    assert set(re.findall(r"`(\w+)`", row.partition("JSON")[2])) == set(form.__struct_fields__)


def test_every_name_that_other_plugins_may_use_is_described() -> None:
    section = PLUGIN_PAGE[PLUGIN_PAGE.index("## For other plugins") :]
    assert {name for name in svc_auth_self.api.__all__ if f"`{name}`" not in section} == set()


def commands() -> list[tuple[str, click.Command]]:
    """The plugin's commands with the section that describes them; groups with each of their own."""
    found: list[tuple[str, click.Command]] = []
    for name, (home, summary) in plugin.COMMANDS.items():
        command = LazyCommand(name, home, summary).command
        inner = command.commands.values() if isinstance(command, click.Group) else [command]
        found += [(name, one) for one in inner]
    return found


@pytest.mark.parametrize(("name", "command"), commands(), ids=lambda value: getattr(value, "name", value))
def test_every_command_and_option_is_described(name: str, command: click.Command) -> None:
    match = re.search(rf"^## [^\n]*svc {name}\b.*?(?=^## )", CLI_PAGE, re.MULTILINE | re.DOTALL)
    assert match is not None
    text = match[0]
    if command.name != name:
        assert f"`svc {name} {command.name}" in text
    for option in command.params:
        if isinstance(option, click.Option) and option.name not in SOURCE | {"as_json"}:
            assert any(f"`{one}" in text for one in option.opts), option.opts
