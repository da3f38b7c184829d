"""The plugin, by the contracts of svc and of queries."""

from __future__ import annotations

import pytest
from svc_hello.descriptor import PLUGIN
from svc_hello.lengths import ShorterThan
from svc_query.testing.operators import QueryOperatorContract

from svc_testing import PluginContract


class TestPlugin(PluginContract):
    plugin_id = PLUGIN.id


class TestShorterThan(QueryOperatorContract):
    plugin_id = PLUGIN.id
    examples = (({"value": 4}, ["", "Ann"], ["Anna", 7, None]),)
    refused = ({"value": "4"}, {"value": None}, {"value": True})

    @pytest.fixture
    def extension(self):
        return ShorterThan()
