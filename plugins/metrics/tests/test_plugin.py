"""The plugin keeps the contract of all plugins, and its pages say what the code does."""

from __future__ import annotations

from pathlib import Path

import svc_metrics.api
from svc_metrics.configuration import MetricsConfiguration

from svc_testing import HookPagesContract, PluginContract, PluginPagesContract

DOCS = Path(__file__).parents[3] / "docs"


class TestMetricsPlugin(PluginContract):
    plugin_id = "metrics"


class TestHookPages(HookPagesContract):
    directory = DOCS / "hooks" / "metrics"
    specifications = svc_metrics.api
    driver_id = "metrics"


class TestPages(PluginPagesContract):
    docs = DOCS
    plugin_id = "metrics"
    plugin_page = "plugins/metrics.md"
    http_page = "http/metrics.md"
    api = svc_metrics.api
    configuration = MetricsConfiguration
