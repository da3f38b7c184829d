"""The plugin keeps the contract of all plugins, and its pages say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import svc_events.api
from svc_events.api import EVENT_TYPES

from svc.plugins import load_plugins
from svc_testing import HookPagesContract, PluginContract, PluginPagesContract, used_by

DOCS = Path(__file__).parents[3] / "docs"
TELLING = ("events", "query", "sharing", "task.gc", "tasks", "users", "versions")


class TestEventsPlugin(PluginContract):
    plugin_id = "events"


class TestHookPages(HookPagesContract):
    directory = DOCS / "hooks" / "events"
    specifications = svc_events.api
    driver_id = "events"


class TestPages(PluginPagesContract):
    docs = DOCS
    plugin_id = "events"
    plugin_page = "plugins/events.md"
    api = svc_events.api


def test_the_table_has_every_event_and_its_plugin() -> None:
    page = (DOCS / "plugins" / "events.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| `([a-z.]+)` \|", page, re.MULTILINE)
    described = {name: owner for names, owner in rows for name in re.findall(r"`(\w+)`", names)}
    registry = load_plugins(used_by(*TELLING)).registries.driven[EVENT_TYPES.name].registry
    assert described == {item.name: item.plugin_id for item in registry}
