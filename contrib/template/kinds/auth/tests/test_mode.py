"""The plugin, by the contracts of svc."""

from __future__ import annotations

import pytest
from svc_hello.descriptor import PLUGIN
from svc_hello.mode import WordAuthMode

from svc.plugin import Credentials
from svc_testing import AuthModeContract, PluginContract


class TestPlugin(PluginContract):
    plugin_id = PLUGIN.id


class TestMode(AuthModeContract):
    @pytest.fixture
    def mode(self):
        return WordAuthMode("open sesame")

    @pytest.fixture
    def accepted(self):
        return [Credentials(scheme="bearer", value="open sesame")]

    @pytest.fixture
    def refused(self):
        return [Credentials(scheme="bearer", value=value) for value in ("", "open", "open sesame!")]


def test_nobody_is_let_in_without_a_word():
    from svc.errors import AuthRequired

    with pytest.raises(AuthRequired):
        WordAuthMode().authenticate(Credentials(scheme="bearer", value=""))
