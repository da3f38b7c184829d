"""The plugin keeps the contract of all plugins, and its page says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from svc_task_gc.configuration import GcConfiguration
from svc_task_gc.task import GcArguments

from svc.database import CollectionReport
from svc_testing import PluginContract, commands_of

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "plugins" / "task-gc.md").read_text(encoding="utf-8")


class TestGcPlugin(PluginContract):
    plugin_id = "task.gc"


def shown(value: object) -> str:
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def test_every_setting_has_its_row_and_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", PAGE, re.MULTILINE))
    assert {name: rows.get(name) for name in GcConfiguration.__struct_fields__} == {
        name: shown(getattr(GcConfiguration(), name)) for name in GcConfiguration.__struct_fields__
    }


def test_every_argument_command_and_member_of_the_report_is_described() -> None:
    for field in msgspec.structs.fields(GcArguments):
        assert f"`{field.name}`" in PAGE
    for name in commands_of("task.gc"):
        assert f"`svc {name}" in PAGE
    http = (DOCS / "http" / "gc.md").read_text(encoding="utf-8")
    for name in (*CollectionReport.__struct_fields__, "snapshot"):
        assert f"| `{name}` |" in http
