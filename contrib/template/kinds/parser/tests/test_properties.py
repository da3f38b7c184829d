"""The plugin, by the contracts of svc and of queries."""

from __future__ import annotations

import pytest
from svc_hello.descriptor import PLUGIN
from svc_hello.properties import PropertiesParser
from svc_query.testing.parsers import ParserContract

from svc_testing import PluginContract


class TestPlugin(PluginContract):
    plugin_id = PLUGIN.id


class TestProperties(ParserContract):
    plugin_id = PLUGIN.id
    samples = {"car.properties": b"# a car\ncolor = red\n"}
    documents = {"car.properties": {"color": "red"}}
    unreadable = {"letter.properties": b"Dear Ann"}

    @pytest.fixture
    def extension(self):
        return PropertiesParser()
