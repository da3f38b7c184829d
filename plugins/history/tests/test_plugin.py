"""The plugin keeps the contract of all plugins, and its page says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from svc.plugins import Plugins
from svc_history.configuration import HistoryConfiguration
from svc_history.view import HistoryView
from svc_testing import PluginContract

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "plugins" / "history.md").read_text(encoding="utf-8")


class TestHistoryPlugin(PluginContract):
    plugin_id = "history"


def test_every_setting_has_its_row_and_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d+) MiB \|", PAGE, re.MULTILINE))
    assert {name: int(shown) << 20 for name, shown in rows.items()} == {
        name: getattr(HistoryConfiguration(), name) for name in HistoryConfiguration.__struct_fields__
    }


def test_the_view_is_described() -> None:
    assert f"The view `{HistoryView.name}` " in PAGE


def test_every_route_is_described(plugins: Plugins) -> None:
    page = (DOCS / "http" / "history.md").read_text(encoding="utf-8")
    routes = plugins.registries.routes.of_plugin("history")
    assert routes
    for route in routes:
        template = re.sub(r":(path|text)\}", "}", route.value.template)
        assert re.search(rf"{re.escape(template)}[`?]", page), template
