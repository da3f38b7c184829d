"""The pages about tasks say what the code does, and the plugin that one of them makes passes its own test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import svc_tasks.api
import svc_tasks.testing.contract
from svc_tasks.api import Task, TaskProgress
from svc_tasks.configuration import TasksConfiguration
from svc_tasks.models import Schedule, ScheduleChange
from svc_tasks.records import ScheduleState

from svc_testing import DistributionFactory, HookPagesContract, PluginPagesContract

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "plugins" / "writing-a-task-type.md"
FILES = dict(
    re.findall(
        r"^`([\w/.]+\.py)`:\n\n```python\n(.*?)^```$",
        PAGE.read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
)


class TestHookPages(HookPagesContract):
    directory = DOCS / "hooks" / "tasks"
    specifications = svc_tasks.api
    driver_id = "tasks"


class TestPages(PluginPagesContract):
    docs = DOCS
    plugin_id = "tasks"
    plugin_page = "plugins/tasks.md"
    http_page = "http/tasks.md"
    configuration = TasksConfiguration
    bodies = (Schedule, ScheduleChange, TaskProgress)
    records = (("/tasks/records/", Task), ("/tasks/schedules/", ScheduleState))
    api = svc_tasks.api


def test_the_plugin_of_the_page_passes_its_test(tmp_path: Path) -> None:
    files = dict(FILES)
    test = tmp_path / "tests" / "test_checksums.py"
    test.parent.mkdir()
    test.write_text(files.pop("tests/test_checksums.py"))
    factory = DistributionFactory(tmp_path / "installed", in_process=False)
    factory.install(
        "acme-checksums",
        modules={name.removesuffix(".py").replace("/", "."): code for name, code in files.items()},
        entry_points={"acme.checksums": "acme_checksums.descriptor:PLUGIN"},
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("--import-mode=importlib", str(test)),
        ],
        cwd=tmp_path,
        env=factory.environment(os.environ),
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_commands_of_all_pages_that_send_json_say_so() -> None:
    pages = [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]
    commands = [
        line
        for page in pages
        for line in page.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
        if re.search(r"\bcurl\b.* (-d|--data|--data-raw) '?[\[{]", line)
    ]
    assert commands
    assert [line for line in commands if "Content-Type: application/json" not in line] == []


def test_an_assertion_of_a_drivers_contract_says_what_differs() -> None:
    loader = svc_tasks.testing.contract.__spec__.loader
    assert type(loader).__name__ == "AssertionRewritingHook"
