"""The pages that describe the plugin say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from svc.plugins import Plugins
from svc_files.configuration import FilesConfiguration
from svc_files.models import AnyOperation

DOCS = Path(__file__).parents[4] / "docs"


def test_every_setting_has_its_row_and_default() -> None:
    page = (DOCS / "plugins" / "files.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", page, re.MULTILINE))
    settings = FilesConfiguration()
    assert set(rows) == set(FilesConfiguration.__struct_fields__)
    for name, shown in rows.items():
        assert _number(shown) == getattr(settings, name), name


def _number(shown: str) -> int | bool:
    if shown in ("true", "false"):
        return shown == "true"
    digits, _, unit = shown.partition(" ")
    return int(digits.replace(",", "")) * {"": 1, "MiB": 1 << 20, "GiB": 1 << 30}[unit]


def test_every_route_is_described(plugins: Plugins) -> None:
    pages = "".join((DOCS / "http" / f"{name}.md").read_text() for name in ("files", "links", "blobs"))
    for route in plugins.registries.routes.of_plugin("files"):
        template = route.value.template.replace("{path:path}", "{path}")
        assert f"{template}`" in pages or f"{template}?" in pages, template


@pytest.mark.parametrize("operation", AnyOperation.__args__)
def test_every_member_of_an_operation_is_described(operation: type[msgspec.Struct]) -> None:
    page = (DOCS / "http" / "files.md").read_text()
    tag = operation.__struct_config__.tag
    row = next(line for line in page.splitlines() if line.startswith(f"| `{tag}` |"))
    for field in msgspec.structs.fields(operation):
        assert f"`{field.encode_name}`" in row, (tag, field.encode_name)


def test_every_limit_of_a_setting_can_be_reached() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"scan_entries": 0}, FilesConfiguration)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"unknown": 1}, FilesConfiguration)
