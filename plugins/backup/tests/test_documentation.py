"""The pages that describe the plugin say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec
import pytest

from svc_backup.configuration import BackupConfiguration
from svc_backup.reports import import_report
from svc_backup.server_paths import DIRECTORY_VARIABLE
from svc_testing import PluginContract, commands_of

DOCS = Path(__file__).parents[3] / "docs"
COMMANDS = list(commands_of("backup").values())
SHARED = {"database", "url", "token", "tls_ca", "as_json"}


class TestBackupPlugin(PluginContract):
    plugin_id = "backup"


def test_every_setting_has_its_row_and_default() -> None:
    page = (DOCS / "plugins" / "backup.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", page, re.MULTILINE))
    settings = BackupConfiguration()
    assert set(rows) == set(BackupConfiguration.__struct_fields__)
    for name, shown in rows.items():
        digits, _, unit = shown.partition(" ")
        assert int(digits.replace(",", "")) * {"": 1, "TiB": 1 << 40}[unit] == getattr(settings, name)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"maximum_import": 0}, BackupConfiguration)


def test_every_route_is_described(plugins) -> None:
    page = (DOCS / "http" / "backup.md").read_text()
    templates = {route.value.template for route in plugins.registries.routes.of_plugin("backup")}
    assert len(templates) == 10
    for template in templates:
        assert template.replace("/version/", "/versions/") in page


def test_every_member_of_a_report_is_described(source, target, take_in) -> None:
    page = (DOCS / "http" / "backup.md").read_text()
    for name in import_report(take_in(target, source.export())).__struct_fields__:
        assert f"`{name}`" in page, name


def test_the_directory_is_named_where_people_look() -> None:
    for page in ("http/backup.md", "plugins/backup.md"):
        assert DIRECTORY_VARIABLE in (DOCS / page).read_text()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.name))
def test_every_option_of_a_command_is_described(command: click.Command) -> None:
    text = (DOCS / "cli.md").read_text()
    match = re.search(rf"^## svc {command.name}\b.*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    assert match is not None
    known = set()
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            known |= {*parameter.opts, *parameter.secondary_opts}
            for spelling in [] if parameter.name in SHARED else parameter.opts:
                assert re.search(rf"`{re.escape(spelling)}[ `]", match[0]), spelling
    documented = set(re.findall(r"^\| `(-[^` ]+)", match[0], re.MULTILINE))
    assert documented <= known
