"""The page of the plugin says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from svc_task_reindex.following import ConfigurationsJob
from svc_task_reindex.task import BATCH_FILES, BREAKER_FAILURES, ReindexArguments

from svc_testing import PluginContract

from .conftest import Runner  # noqa: TID252

PAGE = (Path(__file__).parents[3] / "docs" / "plugins" / "task-reindex.md").read_text(encoding="utf-8")
ARGUMENTS = PAGE.split("## Arguments")[1].split("\n## ")[0]


class TestPlugin(PluginContract):
    plugin_id = "task.reindex"


def test_every_argument_has_its_row_and_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", ARGUMENTS, re.MULTILINE))
    for field in msgspec.structs.fields(ReindexArguments):
        default = field.default
        shown = f"{default:,}" if type(default) is int else str(default).lower()
        assert rows[field.name].strip("` ") == shown


def test_every_member_of_a_result_is_described(run: Runner) -> None:
    described = set(re.findall(r"^\| `(\w+)`", PAGE.split("## The result")[1], re.MULTILINE))
    assert set(run()) == described


def test_numbers_are_those_of_the_code() -> None:
    assert f"A batch is {BATCH_FILES} files" in PAGE
    assert f"After {BREAKER_FAILURES} failures in a row" in PAGE
    assert f"| `{ConfigurationsJob.name}` | {ConfigurationsJob.interval_s} s |" in PAGE
