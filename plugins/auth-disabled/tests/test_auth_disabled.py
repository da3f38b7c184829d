"""The auth mode ``disabled``: everyone is root, on loopback only."""

from __future__ import annotations

import pytest

from svc.plugin import ROOT_USER_ID, Credentials
from svc.plugins import load_plugins, select_auth_mode
from svc_auth_disabled.mode import DisabledAuthMode
from svc_testing import AuthModeContract, PluginContract


class TestPlugin(PluginContract):
    plugin_id = "auth.disabled"


class TestMode(AuthModeContract):
    @pytest.fixture
    def mode(self):
        return DisabledAuthMode()

    @pytest.fixture
    def accepted(self):
        return [
            Credentials(),
            Credentials(scheme="bearer", value="whatever"),
            Credentials(query_token="whatever"),
            Credentials(remote_address="203.0.113.9", secure=True),
        ]

    @pytest.fixture
    def refused(self):
        return []

    def test_every_request_is_roots(self, mode, accepted):
        for credentials in accepted:
            identity = mode.authenticate(credentials)
            assert identity.is_root
            assert identity.user_id == ROOT_USER_ID
            assert identity.rules == ()

    def test_it_asks_for_loopback(self, mode):
        assert mode.loopback_only


@pytest.mark.parametrize("name", ["disabled", "false"])
def test_it_is_chosen_by_name_and_by_alias(name):
    selected = select_auth_mode(load_plugins(["auth.disabled"]), name)
    assert selected.plugin_id == "auth.disabled"
    assert selected.mode.name == "disabled"
